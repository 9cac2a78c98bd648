"""The words of a question, as the grader compares them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np

from cragside.adapters.embedded.asian_words import without_asking
from cragside.adapters.embedded.dates import AskedDate, asked_dates
from cragside.adapters.embedded.foreign import shares, tongue_of, topicless, unelided
from cragside.adapters.embedded.lexicon import Lexicon, Rows
from cragside.adapters.embedded.names import names_in
from cragside.adapters.embedded.numbers import plain
from cragside.adapters.embedded.stopwords import ENGLISH, GERMAN, OTHER, SCAFFOLDING
from cragside.adapters.embedded.words import Language, function_words, stem, words
from cragside.domain.dates import MONTHS
from cragside.ports.embedder import Vectors

_MOST_QUESTION_WORDS = 24
_SHORTEST_MISSPELT = 5


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question's content words, with their rows, importance and weights (sum 1), and its direction.

    `spelt` is 1 for words in Latin letters, else 0: WordLlama knows other scripts by the letter and numbers by the
    digit, so that the nearness of two such words means nothing. A number is there, or it is not. `strange` are the
    words that the vocabulary lacks: their spelling may be wrong. `stems` are those in each language that a passage may
    have. A text has the words of a date with the date alone, in any of its forms.
    """

    every_word: tuple[str, ...]
    content: tuple[str, ...]
    rows: Rows
    norms: Vectors
    weights: Vectors
    direction: Vectors
    spelt: Vectors
    strange: frozenset[str]
    stems: Mapping[Language, tuple[str, ...]]
    dates: tuple[AskedDate, ...] = ()

    @property
    def is_english(self) -> bool:
        """Tell if it has more function words of English than of any other language."""
        count = {listed: sum(map(listed.__contains__, self.every_word)) for listed in (ENGLISH, GERMAN, OTHER)}
        return count[ENGLISH] > max(count[GERMAN], count[OTHER])


def read_question(text: str, lexicon: Lexicon) -> QuestionWords:
    """Analyse a question. If it has no content words, all its words count."""
    every = words(text)
    tongue = tongue_of(every)
    if tongue == "french":
        every = unelided(every)
    stop = (function_words(every) if tongue == "english" else topicless(tongue)) | SCAFFOLDING
    dates = asked_dates(text)
    dated = frozenset().union(*(date.words for date in dates))
    months = dated.intersection(MONTHS)  # "may" says nothing elsewhere
    telling = words(without_asking(text)) if tongue == "english" else every
    content = list(dict.fromkeys(w for w in telling if w not in stop or w in months)) or list(dict.fromkeys(every))
    rows = lexicon.rows(content)
    if len(content) > _MOST_QUESTION_WORDS:
        kept = np.sort(np.argsort(-lexicon.norms[rows], kind="stable")[:_MOST_QUESTION_WORDS])
        content, rows = [content[i] for i in kept], rows[kept]
    norms = lexicon.norms[rows]
    if tongue != "english":
        norms = norms * np.array(shares(content, text, tongue), dtype=np.float32)
    total = float(norms.sum())
    weights = norms / total if total > 0 else norms
    spelt = np.fromiter(("9" < word[0] < "\u0250" and word not in dated for word in content), dtype=np.float32)
    strange = names_in((word for word in content if len(word) >= _SHORTEST_MISSPELT), lexicon, rare=False)
    direction = lexicon.direction(every)
    stemmed = {language: tuple(plain(stem(word, language)) for word in content) for language in get_args(Language)}
    misspelt = frozenset(strange) - dated
    return QuestionWords(
        tuple(every), tuple(content), rows, norms, weights, direction, spelt, misspelt, stemmed, tuple(dates)
    )
