"""Analyses questions and passages, and measures the features with which the grader compares them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from cragside.adapters.embedded.embedder import Lexicon, Rows, WordLlamaEmbedder
from cragside.adapters.embedded.languages import ForeignText, tongue_of, topicless, unelided, word_weights
from cragside.adapters.embedded.names import is_english, meant, names_in
from cragside.adapters.embedded.numbers import AskedDate, PassageDates, asked_dates, numbers_of, plain
from cragside.adapters.embedded.words import (
    ENGLISH,
    GERMAN,
    OTHER,
    SCAFFOLDING,
    STOPWORDS,
    Language,
    function_words,
    stem,
    stems,
    without_asking,
    words,
)
from cragside.domain.dates import MONTHS, Period
from cragside.domain.evidence import Document
from cragside.ports.embedder import Vectors

_MOST_QUESTION_WORDS = 24
_SHORTEST_MISSPELT = 5


@dataclass(frozen=True)
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

    @cached_property
    def distinct(self) -> Mapping[Language, frozenset[str]]:
        """The stems in each language, each once."""
        return {language: frozenset(stems) for language, stems in self.stems.items()}

    @cached_property
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
        norms = norms * np.array(word_weights(content, text, tongue), dtype=np.float32)
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


# The direction of a longer text says little, so it has one for each of these windows.
_LONGEST_TEXT, _WINDOW, _STRIDE = 300, 240, 160
_BLOCK = 20
# The title is read with each segment, so a long one would cost much.
_LONGEST_TITLE = 500
_PARENTHESIS = re.compile(r"\([^()]*\)")
_FILE_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")


@dataclass(frozen=True)
class PassageWords:
    """The analysis of a passage, which depends on no question. What few questions ask for is read for the first one.

    It has parts: the title, then each block of 20 words. `rows` has each word once; `places` says which of them the
    parts have, one part after the other, from each of `starts`. `stems` has each stem of a part once, between blanks,
    and a line for each part, in one string: it takes a tenth of a set's memory. `distinct` has all stems once. `dates`
    are those of each part. `directions` are those of windows with the title, shape (windows, dimensions).
    `telling` are the stems of the title's words that say something, `weights` their weights.
    """

    excerpt: "Excerpt"
    language: Language
    title: tuple[str, ...]
    telling: tuple[str, ...]
    weights: Vectors
    rows: Rows
    places: Rows
    starts: Rows
    stems: str
    distinct: tuple[str, ...]
    directions: Vectors
    foreign: tuple[ForeignText, ...]
    dates: tuple[tuple[Period, ...], ...]

    @cached_property
    def _lines(self) -> str:
        """All words of title and text, each in a line: it takes a tenth of a list's memory."""
        return _as_lines(words(self.excerpt.whole))

    @cached_property
    def _numbers(self) -> str:
        return _as_lines(numbers_of(self.excerpt.whole))

    @cached_property
    def is_english(self) -> bool:
        """Tell if the function words of title and text are not those of another language."""
        return is_english(self.every_word())

    def every_word(self) -> list[str]:
        """Return all words of title and text, in their order."""
        return self._lines.split()

    def has_word(self, forms: Iterable[str]) -> bool:
        """Tell if one of these words stands in title or text as it is."""
        return any(f"\n{form}\n" in self._lines for form in forms)

    def has_number(self, forms: Iterable[str]) -> bool:
        """Tell if title or text state a number or code, given in its forms."""
        return any(f"\n{form}\n" in self._numbers for form in forms)

    def may_move_any(self, dates: Sequence[AskedDate]) -> bool:
        """Tell if the passage moves something from one of these dates to another one."""
        return any(date.may_be_moved(stated) for date in dates for stated in self.dates)

    def states_any(self, dates: Sequence[AskedDate]) -> bool:
        """Tell if the passage, its title or its place states one of these dates in full."""
        return any(date.in_full(stated) for date in dates for stated in self.dates)

    def has_stem(self, sought: str) -> bool:
        """Tell if the passage or its title has a stem."""
        return f" {sought} " in self.stems


class Excerpt(NamedTuple):
    """A passage, and where it is from, as far as the title does not say it: file name and section."""

    title: str
    text: str
    place: str = ""

    @classmethod
    def of(cls, document: Document) -> "Excerpt":
        """Return the passage of a document."""
        place = " ".join(str(document.metadata.get(name) or "") for name in ("filename", "section"))
        return cls(document.title, document.content, place.strip())

    @property
    def whole(self) -> str:
        """The title and the text, as a reader sees them."""
        return f"{self.title}\n{self.text}"


class Analyses:
    """Remembers the words, and the analyses of the last `most` passages."""

    def __init__(self, model: WordLlamaEmbedder, most: int) -> None:
        self._model = model
        self._lexicon: Lexicon | None = None
        self._passages: LRUCache[Excerpt, PassageWords] = LRUCache(most)

    def lexicon(self) -> Lexicon:
        """Return the vectors of words. A full one is cleared, so ask for it before each comparison."""
        if self._lexicon is None:
            self._lexicon = Lexicon(self._model)
        elif self._lexicon.full:
            self._lexicon.clear()
            self._passages.clear()
        return self._lexicon

    def passage(self, excerpt: Excerpt, lexicon: Lexicon) -> PassageWords:
        """Return the analysis of a passage."""
        passage = self._passages.get(excerpt)
        if passage is None:
            passage = self._passages[excerpt] = read_passage(excerpt.title, excerpt.text, lexicon, place=excerpt.place)
        return passage


def read_passage(title: str, text: str, lexicon: Lexicon, *, place: str = "") -> PassageWords:
    """Analyse a passage.

    `place` names its document and section, as far as the title does not: dates in the passage are in their years.
    """
    excerpt = Excerpt(title, text, place)
    body = words(text)
    title = title[:_LONGEST_TITLE]
    language = tongue_of(body)
    heading = words(title)
    named = words(_PARENTHESIS.sub(" ", _FILE_SUFFIX.sub("", title))) or heading
    if language == "french":
        body, heading, named = map(unelided, (body, heading, named))
    parts = [heading, *(body[start : start + _BLOCK] for start in range(0, len(body), _BLOCK))]
    rows = [lexicon.rows(_telling(part)) for part in parts]
    topic = [word for word in named if word not in (topicless("french") if language == "french" else STOPWORDS)]
    topic_rows = lexicon.rows(topic)  # may replace the norms
    distinct, places = np.unique(np.concatenate(rows), return_inverse=True)
    foreign = tuple(ForeignText.of(part, language) for part in parts) if language != "english" else ()
    if foreign:
        known = [each.stems for each in foreign]
    else:
        stop = function_words([*heading, *body])
        known = [frozenset(map(plain, stems(part, language, stop))) for part in parts]
    dates = PassageDates.of(text, f"{title}\n{place[:_LONGEST_TITLE]}")
    return PassageWords(
        excerpt,
        language,
        tuple(named),
        tuple(stem(word, language) for word in topic),
        lexicon.norms[topic_rows],
        distinct,
        places.astype(np.int32),
        np.array(list(accumulate(map(len, rows[:-1]), initial=0)), dtype=np.int32),
        "\n".join(" ".join(["", *each, ""]) for each in known),
        tuple(frozenset[str]().union(*known)),
        np.stack([lexicon.direction([*heading, *window]) for window in _windows(body)]),
        foreign,
        (dates.above, *(dates.among(start, start + _BLOCK) for start in range(0, len(body), _BLOCK))),
    )


def _as_lines(found: Iterable[str]) -> str:
    return "\n".join(["", *found, ""])


def _windows(body: list[str]) -> Sequence[list[str]]:
    if len(body) <= _LONGEST_TEXT:
        return [body]
    return [body[start : start + _WINDOW] for start in range(0, len(body) - _WINDOW + _STRIDE, _STRIDE)]


def _telling(part: list[str]) -> list[str]:
    """Return the distinct words of a part that say something; all if none does, and never no word."""
    return [word for word in dict.fromkeys(part) if word not in STOPWORDS] or part or [""]


FEATURES = ("likeness", "coverage", "title_match", "gap")
Features = npt.NDArray[np.float64]

# How much of a word a passage has that spells it otherwise by one slip of the keyboard.
_MISSPELT = 0.9
_SHORTEST_STEM = 3
# Three neighbouring blocks of words are a run. A question's words count where they stand near each other: anywhere in a
# long passage, length alone would collect them.
_RUN = 3
# In English, more similarity than this means nothing. In languages without a mean of their own all pairs of texts
# exceed it, because the background is English.
_MOST_LIKENESS = 6.0


@dataclass(frozen=True, slots=True)
class Background:
    """The distribution of passage vectors: mean, main axes, and the variances along these and in all other directions.

    Against it a cosine becomes a number of standard deviations, comparable between questions. `means` has the means of
    languages other than English; they share the variances.
    """

    mean: Vectors
    axes: Vectors
    variances: Vectors
    rest: float
    means: Mapping[Language, Vectors] = field(default_factory=dict)

    def standardised(self, question: Vectors, passages: Vectors, languages: Sequence[Language]) -> Vectors:
        """The similarity of each passage (rows) to the question, in standard deviations above that of any passage."""
        along = self.axes @ question
        variance = float((along**2 * self.variances).sum()) + self.rest * float(question @ question)
        usual = self.mean if self.means.keys().isdisjoint(languages) else np.stack([*map(self._mean, languages)])
        likeness: Vectors = ((passages - usual) @ question) / np.sqrt(max(variance, 1e-9))
        return np.minimum(likeness, _MOST_LIKENESS)

    def _mean(self, language: Language) -> Vectors:
        return self.means.get(language, self.mean)


def compare(
    question: QuestionWords, passages: Sequence[PassageWords], lexicon: Lexicon, background: Background
) -> Features:
    """Return the features of each passage, shape (passages, 4).

    Likeness is in standard deviations, that of the most similar window. Coverage is the share, by weight, of the
    question's content words that the best run and the title have; a word that they lack counts by the nearest relative
    there. `gap` is the length of the vector of the most telling word that the whole passage lacks.
    """
    table = np.empty((len(passages), len(FEATURES)))
    if not passages:
        return table
    directions = np.concatenate([passage.directions for passage in passages])
    languages = [passage.language for passage in passages for _ in passage.directions]
    windows = list(accumulate((len(passage.directions) for passage in passages[:-1]), initial=0))
    table[:, 0] = np.maximum.reduceat(background.standardised(question.direction, directions, languages), windows)
    met = _met(question, passages, lexicon)
    starts = list(accumulate((len(passage.starts) for passage in passages), initial=0))
    for row, (start, end) in enumerate(pairwise(starts)):
        table[row, 1] = (_runs(met[start:end]) @ question.weights).max()
        table[row, 2] = title_match(question, passages[row])
    table[:, 3] = ((1 - np.maximum.reduceat(met, starts[:-1])) * question.norms).max(axis=1)
    return table


def _runs(parts: Vectors) -> Vectors:
    """Return the most of each word (columns) that each run of parts (rows) has together with the title."""
    runs = parts[1:] if len(parts) > 1 else parts
    for _ in range(_RUN - 1):
        runs = np.maximum(runs[:-1], runs[1:]) if len(runs) > 1 else runs
    best: Vectors = np.maximum(runs, parts[0])
    return best


def covered(question: QuestionWords, passage: PassageWords, lexicon: Lexicon) -> float:
    """Return the share of the question's content words, as coverage, that the whole passage has."""
    met = _met(question, [passage], lexicon)
    return min(1.0, float(met.max(axis=0) @ question.weights))


def _met(question: QuestionWords, passages: Sequence[PassageWords], lexicon: Lexicon) -> Vectors:
    """Measure how much (0..1) of each content word (columns) each part (rows) of the passages has."""
    met: Vectors = np.maximum(
        _nearest(question, passages, lexicon), _misspelt(question, passages, _found(question, passages))
    )
    return met


def _nearest(question: QuestionWords, passages: Sequence[PassageWords], lexicon: Lexicon) -> Vectors:
    """Return the cosine (0..1) of each content word (columns) with its nearest relative in each part (rows)."""
    rows = np.concatenate([passage.rows for passage in passages])
    cosines = lexicon.vectors[rows] @ _unit_rows(lexicon, question.rows).T
    cosines /= np.maximum(lexicon.norms[rows], np.float32(1e-9))[:, None]
    places = _shifted([passage.places for passage in passages], [len(passage.rows) for passage in passages])
    starts = _shifted([passage.starts for passage in passages], [len(passage.places) for passage in passages])
    cosines = cosines[places]
    nearest: Vectors = np.maximum(np.maximum.reduceat(cosines, starts, axis=0), 0) * question.spelt
    return nearest


def _shifted(numbers: Sequence[Rows], sizes: Sequence[int]) -> Rows:
    """Return the numbers of several lists as those of one, in which the counted things follow one another."""
    begins = accumulate(sizes[:-1], initial=0)
    return np.concatenate([begin + each for begin, each in zip(begins, numbers, strict=True)])


def _found(question: QuestionWords, passages: Sequence[PassageWords]) -> Vectors:
    """Return 1 where a part (rows) has a content word (columns) in any form; in German and French how much of it."""
    found = np.concatenate([_has(question, passage) for passage in passages])
    parts = [part for passage in passages for part in passage.dates] if question.dates else []
    dated, sure = dict[int, Vectors](), dict[int, bool]()
    for date in question.dates:
        asked = [(column, date.is_year(word)) for column, word in enumerate(question.content) if word in date.words]
        shares = {of_year: np.array(date.shares(parts, of_year=of_year)) for of_year in {each for _, each in asked}}
        for column, of_year in asked:
            dated[column] = np.maximum(dated.get(column, np.zeros(len(parts))), shares[of_year])
            sure[column] = sure.get(column, True) and date.sure
    for column, share in dated.items():
        found[:, column] = share if sure[column] else np.maximum(found[:, column], share)
    return found


def _has(question: QuestionWords, passage: PassageWords) -> Vectors:
    if passage.foreign:
        return np.array([[part.has(word) for word in question.content] for part in passage.foreign], dtype=np.float32)
    found = np.zeros((len(passage.starts), len(question.content)), dtype=np.float32)
    parts: list[str] = []
    for column, sought in enumerate(question.stems[passage.language]):
        if passage.has_stem(sought):
            parts = parts or passage.stems.split("\n")
            for row, known in enumerate(parts):
                if f" {sought} " in known:
                    found[row, column] = 1
    return found


def _misspelt(question: QuestionWords, passages: Sequence[PassageWords], found: Vectors) -> Vectors:
    """`found`, with most of a strange word where a part has one that differs by one slip.

    A store reads its questions in the words of its passages before they are graded. Web pages are graded with the
    question as it was typed, and so are passages by a client that calls the grader alone.
    """
    if not question.strange:
        return found
    every = set[str]().union(*(passage.distinct for passage in passages))
    languages = {passage.language for passage in passages}
    parts: list[tuple[Language, str]] = []
    for column, word in enumerate(question.content):
        if word not in question.strange:
            continue
        near = {
            language: [f" {other} " for other in meant(stem(word, language), shortest=_SHORTEST_STEM).keys() & every]
            for language in languages
        }
        if not any(near.values()):
            continue
        parts = parts or [(passage.language, known) for passage in passages for known in passage.stems.split("\n")]
        for row in np.flatnonzero(found[:, column] == 0):
            language, known = parts[row]
            if any(other in known for other in near[language]):
                found[row, column] = _MISSPELT
    return found


def words_found(question: QuestionWords, passage: PassageWords, *, near: bool) -> tuple[str, ...]:
    """Return the content words of a question that a passage or its title has, in any inflection.

    With `near`, those of the title and of the run that has most of them.
    """
    found = _found(question, [passage])
    runs = _runs(found) if near else found.max(axis=0, keepdims=True)
    there = runs[np.count_nonzero(runs, axis=1).argmax()]
    return tuple(word for word, share in zip(question.content, there, strict=True) if share)


def title_match(question: QuestionWords, passage: PassageWords) -> float:
    """Return the share (0..1, by weight) of the title that the question names; 1 if it quotes the whole title."""
    if passage.title and _contains(question.every_word, passage.title):
        return 1.0
    if not passage.telling:
        return 0.0
    asked = question.distinct[passage.language]
    if asked.isdisjoint(passage.telling):
        return 0.0
    named = np.fromiter((each in asked for each in passage.telling), dtype=np.float32)
    return float(named @ passage.weights / max(float(passage.weights.sum()), 1e-9))


def novelty(question: QuestionWords, passage: PassageWords) -> int:
    """Count a passage's distinct content words that the question lacks. An echo of the question has none."""
    return len(passage.distinct) - sum(map(passage.has_stem, question.distinct[passage.language]))


def _unit_rows(lexicon: Lexicon, rows: Rows) -> Vectors:
    scaled: Vectors = np.divide(lexicon.vectors[rows], np.maximum(lexicon.norms[rows], 1e-9)[:, None], dtype=np.float32)
    return scaled


def _contains(every: tuple[str, ...], phrase: tuple[str, ...]) -> bool:
    size = len(phrase)
    return phrase[0] in every and any(every[i : i + size] == phrase for i in range(len(every) - size + 1))
