"""Tells if a passage supports a sentence, without a language model."""

import re
import threading
from collections.abc import Sequence

from cachetools import LRUCache
from typing_extensions import override

from cragside.adapters.embedded.features import covered
from cragside.adapters.embedded.lexicon import Lexicon, TokenVectors
from cragside.adapters.embedded.names import is_english, mentions, names_in
from cragside.adapters.embedded.numbers import named_numbers, numbers_of
from cragside.adapters.embedded.passage_words import PassageWords, read_passage
from cragside.adapters.embedded.question_words import QuestionWords, read_question
from cragside.adapters.embedded.stopwords import ENGLISH
from cragside.adapters.embedded.words import stem, words
from cragside.application.answerer import Support, SupportJudge

# The least coverage of a supported sentence, chosen on the training half of CLAP-NQ (`evals/citations.py`).
LEAST_COVERAGE = 0.7
_REMEMBERED = 64
# After the first word of a sentence, which has a capital anyway.
_NAME_INSIDE = re.compile(r"(?<=[\w,;)’'\"”] )[A-Z][\w’'-]{2,}")


class EmbeddedSupportJudge(SupportJudge):
    """Compares with the grader's features: its score is the share of the sentence's content words that a passage has.

    Words count by their weight, and in any inflection; one that is missing counts as far as a related word is there.
    A number, code, date or rare name that the passage lacks means unsupported. Negations and who did what to whom are
    not compared.
    """

    def __init__(self, embedder: TokenVectors) -> None:
        self._embedder = embedder
        self._lexicon: Lexicon | None = None
        self._passages: LRUCache[tuple[str, str], PassageWords] = LRUCache(_REMEMBERED)
        self._lock = threading.Lock()

    @override
    def judge(self, sentence: str, *, title: str, text: str) -> Support:
        with self._lock:
            lexicon = self._ready_lexicon()
            claim = read_question(sentence, lexicon)
            if not claim.content:
                return Support(0.0, supported=False)
            passage = self._passage(title, text, lexicon)
            coverage = covered(claim, passage, lexicon)
            whole = f"{title}\n{text}"
            names = [*names_in(claim.content, lexicon, rare=True), *_capitalised(sentence)]
            exact = _has_numbers(sentence, whole) and all(
                passage.states_any([date]) for date in claim.dates if date.sure
            )
            exact = exact and _has_names(names, claim, passage, whole)
            return Support(coverage, supported=exact and coverage >= LEAST_COVERAGE)

    def _passage(self, title: str, text: str, lexicon: Lexicon) -> PassageWords:
        known = self._passages.get((title, text))
        if known is None:
            known = self._passages[title, text] = read_passage(title, text, lexicon)
        return known

    def _ready_lexicon(self) -> Lexicon:
        """Its own: the grader's is in use on the event loop."""
        if self._lexicon is None:
            self._lexicon = Lexicon(self._embedder)
        elif self._lexicon.full:
            self._lexicon.clear()
            self._passages.clear()
        return self._lexicon


def _has_numbers(sentence: str, whole: str) -> bool:
    """Tell if a text has each number and code of a sentence in one of its forms."""
    named = named_numbers(sentence, counts=True)
    stated = numbers_of(whole) | frozenset(words(whole)) if named else frozenset()
    return all(not stated.isdisjoint(forms) for forms in named)


def _capitalised(sentence: str) -> list[str]:
    """The words with a capital inside a sentence, in lower case: names, with London and the Bible."""
    return [word for match in _NAME_INSIDE.findall(sentence) for word in words(match)]


def _has_names(names: Sequence[str], claim: QuestionWords, passage: PassageWords, whole: str) -> bool:
    """Tell if a passage has each name of a sentence, in any inflection.

    True in languages other than English: their words are in no vocabulary, and German has capitals everywhere.
    """
    found = words(whole)
    if not names or not is_english(claim.every_word) or not is_english(found):
        return True
    missing = [name for name in names if name not in ENGLISH and not passage.has_stem(stem(name, passage.language))]
    return all(mentions(name, claim.every_word, found) for name in missing)
