"""The features with which the grader compares a question with a passage."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from cragside.adapters.embedded.date_reading import Period
from cragside.adapters.embedded.dates import AskedDate, PassageDates, asked_dates
from cragside.adapters.embedded.foreign import ForeignText, shares, tongue_of, topicless, unelided
from cragside.adapters.embedded.lexicon import Lexicon, Rows
from cragside.adapters.embedded.names import names_in, slips
from cragside.adapters.embedded.numbers import plain
from cragside.adapters.embedded.stopwords import SCAFFOLDING, STOPWORDS
from cragside.adapters.embedded.words import Language, function_words, stem, stems, words
from cragside.ports.embedder import Vectors

FEATURES = ("likeness", "coverage", "title_match", "gap")
Features = npt.NDArray[np.float64]

_MOST_QUESTION_WORDS = 24
# How much of a word a passage has that spells it otherwise by one slip of the keyboard.
_MISSPELT = 0.9
_SHORTEST_MISSPELT = 5
# A longer passage is judged by its best window, so that length alone collects no matches.
_LONGEST_SEGMENT, _WINDOW, _STRIDE = 300, 240, 160
# In a passage with more words than the first figure, one sentence among many may have the answer. So it is also read in
# runs as long as the web snippets that the weights were fitted on.
_LONG, _RUN, _RUN_STRIDE = 200, 40, 20
# Runs with a smaller share of the question are not scored. The segment around a run has everything that the run has.
_MOST_OF_IT = 0.6
# In English, more similarity than this means nothing. In languages without a mean of their own all pairs of texts
# exceed it, because the background is English.
_MOST_LIKENESS = 6.0
# The title is read with each segment, so a long one would cost much.
_LONGEST_TITLE = 500
_PARENTHESIS = re.compile(r"\([^()]*\)")
_FILE_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")


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


@dataclass(frozen=True, slots=True)
class Question:
    """A question's content words, with their rows, importance and weights (sum 1), and its direction.

    `spelt` is 1 for words in Latin letters, else 0: WordLlama knows other scripts by the letter and numbers by the
    digit, so that the nearness of two such words means nothing. A number is there, or it is not. `strange` are the
    words that the vocabulary lacks: their spelling may be wrong. A text has the words of a date with the date alone,
    in any of its forms.
    """

    every_word: tuple[str, ...]
    content: tuple[str, ...]
    rows: Rows
    norms: Vectors
    weights: Vectors
    direction: Vectors
    spelt: Vectors
    strange: frozenset[str]
    dates: tuple[AskedDate, ...] = ()

    def stems(self, language: Language) -> list[str]:
        """The stems of the content words in the language of a passage."""
        return [plain(stem(word, language)) for word in self.content]


@dataclass(frozen=True, slots=True)
class Segment:
    """At most 300 words of a passage, with the passage's title, and the dates of both.

    `stems` has each stem once, between blanks, in one string: it takes a tenth of a set's memory. `size` counts them.
    """

    stems: str
    size: int
    rows: Rows
    direction: Vectors
    foreign: ForeignText | None
    dates: tuple[Period, ...] = ()


@dataclass(frozen=True, slots=True)
class PassageWords:
    """The analysis of a passage, which depends on no question. `length` is in words, without the title."""

    language: Language
    title: tuple[str, ...]
    segments: tuple[Segment, ...]
    length: int

    def states_any(self, dates: Sequence[AskedDate]) -> bool:
        """Whether the passage, its title or its place states one of these dates in full."""
        return any(date.in_full(segment.dates) for date in dates for segment in self.segments)


def read_question(text: str, lexicon: Lexicon) -> Question:
    """Analyse a question. If it has no content words, all its words count."""
    every = words(text)
    tongue = tongue_of(every)
    if tongue == "french":
        every = unelided(every)
    stop = (function_words(every) if tongue == "english" else topicless(tongue)) | SCAFFOLDING
    content = list(dict.fromkeys(w for w in every if w not in stop)) or list(dict.fromkeys(every))
    rows = lexicon.rows(content)
    if len(content) > _MOST_QUESTION_WORDS:
        kept = np.sort(np.argsort(-lexicon.norms[rows], kind="stable")[:_MOST_QUESTION_WORDS])
        content, rows = [content[i] for i in kept], rows[kept]
    norms = lexicon.norms[rows]
    if tongue != "english":
        norms = norms * np.array(shares(content, text, tongue), dtype=np.float32)
    total = float(norms.sum())
    weights = norms / total if total > 0 else norms
    dates = asked_dates(text)
    dated = frozenset().union(*(date.words for date in dates))
    spelt = np.fromiter(("9" < word[0] < "\u0250" and word not in dated for word in content), dtype=np.float32)
    strange = names_in((word for word in content if len(word) >= _SHORTEST_MISSPELT), lexicon, rare=False)
    direction = _direction(lexicon, lexicon.rows(every))
    return Question(
        tuple(every), tuple(content), rows, norms, weights, direction, spelt, frozenset(strange) - dated, tuple(dates)
    )


def read_passage(title: str, text: str, lexicon: Lexicon, *, place: str = "", closely: bool = False) -> PassageWords:
    """Analyse a passage; each segment includes the title. `closely` makes runs of 40 words that overlap by 20.

    `place` names its document and section, as far as the title does not: dates in the passage are in their years.
    """
    body = words(text)
    title = title[:_LONGEST_TITLE]
    language = tongue_of(body)
    heading = words(title)
    named = words(_PARENTHESIS.sub(" ", _FILE_SUFFIX.sub("", title))) or heading
    if language == "french":
        body, heading, named = map(unelided, (body, heading, named))
    parts = _overlapping(body, _RUN, _RUN_STRIDE) if closely else _parts(body)
    dates = PassageDates.of(text, f"{title}\n{place[:_LONGEST_TITLE]}")
    starts = [number * (_RUN_STRIDE if closely else _STRIDE) for number in range(len(parts))]
    segments = tuple(
        _segment([*heading, *part], language, lexicon, dates.among(start, start + len(part)))
        for start, part in zip(starts, parts, strict=True)
    )
    return PassageWords(language, tuple(named), segments, len(body))


def compare(
    question: Question, passages: Sequence[PassageWords], lexicon: Lexicon, background: Background
) -> list[Features]:
    """The features of each passage, one row a segment, shape (segments, 4).

    Likeness is in standard deviations. Coverage is the share, by weight, of the question's content words that the
    segment has; a word that it lacks counts by the nearest relative it has. `gap` is the length of the vector of the
    most telling word that is lacking.
    """
    if not passages:
        return []
    segments = [segment for passage in passages for segment in passage.segments]
    ends = list(accumulate(len(passage.segments) for passage in passages))
    table = np.empty((len(segments), len(FEATURES)))
    languages = [passage.language for passage in passages for _ in passage.segments]
    directions = np.stack([segment.direction for segment in segments])
    table[:, 0] = background.standardised(question.direction, directions, languages)
    found = _misspelt(question, passages, _found(question, passages))
    met = np.maximum(_nearest(question, segments, lexicon), found)
    table[:, 1] = met @ question.weights
    matches = [title_match(question, passage, lexicon) for passage in passages]
    table[:, 2] = [match for match, passage in zip(matches, passages, strict=True) for _ in passage.segments]
    table[:, 3] = ((1 - met) * question.norms).max(axis=1)
    return [table[start:end] for start, end in pairwise([0, *ends])]


def deserves_a_closer_look(passage: PassageWords, features: Features) -> bool:
    """Whether a run of words in a long passage with these features could have most of the question."""
    return passage.length > _LONG and bool(has_most_of_it(features).any())


def has_most_of_it(features: Features) -> npt.NDArray[np.bool_]:
    """The rows of features that have most of the question."""
    found: npt.NDArray[np.bool_] = features[:, FEATURES.index("coverage")] >= _MOST_OF_IT
    return found


def _nearest(question: Question, segments: Sequence[Segment], lexicon: Lexicon) -> Vectors:
    """The cosine (0..1) of each content word (columns) with its nearest relative in each segment (rows)."""
    rows = np.concatenate([segment.rows for segment in segments])
    starts = list(accumulate((len(segment.rows) for segment in segments[:-1]), initial=0))
    cosines = lexicon.vectors[rows] @ _unit_rows(lexicon, question.rows).T
    cosines /= np.maximum(lexicon.norms[rows], np.float32(1e-9))[:, None]
    nearest: Vectors = np.maximum(np.maximum.reduceat(cosines, starts, axis=0), 0) * question.spelt
    return nearest


def _found(question: Question, passages: Sequence[PassageWords]) -> Vectors:
    """1 where a segment (rows) has a content word (columns), in any inflection; in German and French how much of it."""
    stems_by_language = {
        language: [f" {sought} " for sought in question.stems(language)] for language in {p.language for p in passages}
    }
    found = np.array(
        [
            [segment.foreign.has(word) for word in question.content]
            if segment.foreign
            else [sought in segment.stems for sought in stems_by_language[passage.language]]
            for passage in passages
            for segment in passage.segments
        ],
        dtype=np.float32,
    )
    for column, word in enumerate(question.content):
        if named := [date for date in question.dates if word in date.words]:
            stated = [segment.dates for passage in passages for segment in passage.segments]
            found[:, column] = [max(date.share(word, dates) for date in named) for dates in stated]
    return found


def _misspelt(question: Question, passages: Sequence[PassageWords], found: Vectors) -> Vectors:
    """`found`, with most of a strange word where a segment has one that differs by one slip."""
    segments = [(segment, passage.language) for passage in passages for segment in passage.segments]
    for column, word in enumerate(question.content):
        for row in np.flatnonzero(found[:, column] == 0) if word in question.strange else ():
            segment, language = segments[row]
            sought = stem(word, language)
            if any(slips(sought, [each for each in segment.stems.split() if each[0] == sought[0]])):
                found[row, column] = _MISSPELT
    return found


def words_found(question: Question, passage: PassageWords) -> tuple[str, ...]:
    """The content words of a question that a passage or its title has, in any inflection."""
    anywhere = _found(question, [passage]).max(axis=0)
    return tuple(word for word, there in zip(question.content, anywhere, strict=True) if there)


def title_match(question: Question, passage: PassageWords, lexicon: Lexicon) -> float:
    """The share (0..1, by weight) of the title that the question names; 1 if it quotes the whole title."""
    if not passage.title:
        return 0.0
    if _contains(question.every_word, passage.title):
        return 1.0
    stop = topicless("french") if passage.language == "french" else STOPWORDS
    telling = [word for word in passage.title if word not in stop]
    if not telling:
        return 0.0
    weights = lexicon.norms[lexicon.rows(telling)]
    asked = set(question.stems(passage.language))
    named = np.fromiter((stem(w, passage.language) in asked for w in telling), dtype=np.float32)
    return float(named @ weights / max(float(weights.sum()), 1e-9))


def novelty(question: Question, passage: PassageWords) -> int:
    """The most content words of a segment that the question lacks. An echo of the question has none."""
    sought = {f" {each} " for each in question.stems(passage.language)}
    return max(segment.size - sum(each in segment.stems for each in sought) for segment in passage.segments)


def has_stem(passage: PassageWords, sought: str) -> bool:
    """Whether a passage or its title has a stem."""
    spaced = f" {sought} "
    return any(spaced in segment.stems for segment in passage.segments)


def _parts(body: list[str]) -> Sequence[list[str]]:
    if len(body) <= _LONGEST_SEGMENT:
        return [body]
    return _overlapping(body, _WINDOW, _STRIDE)


def _overlapping(body: list[str], size: int, stride: int) -> Sequence[list[str]]:
    return [body[start : start + size] for start in range(0, len(body) - size + stride, stride)]


def _segment(part: list[str], language: Language, lexicon: Lexicon, dates: tuple[Period, ...]) -> Segment:
    rows = lexicon.rows(part)
    telling = lexicon.rows([word for word in dict.fromkeys(part) if word not in STOPWORDS] or part or [""])
    foreign = ForeignText.of(part, language) if language != "english" else None
    known = foreign.stems if foreign else frozenset(map(plain, stems(part, language)))
    return Segment(" ".join(["", *known, ""]), len(known), telling, _direction(lexicon, rows), foreign, dates)


def _direction(lexicon: Lexicon, rows: Rows) -> Vectors:
    total: Vectors = lexicon.vectors[rows].sum(axis=0)
    length = float(np.linalg.norm(total))
    return total / length if length > 1e-9 else total


def _unit_rows(lexicon: Lexicon, rows: Rows) -> Vectors:
    scaled: Vectors = np.divide(lexicon.vectors[rows], np.maximum(lexicon.norms[rows], 1e-9)[:, None], dtype=np.float32)
    return scaled


def _contains(every: Sequence[str], phrase: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(every[i : i + size]) == tuple(phrase) for i in range(len(every) - size + 1))
