"""Grades passages without a language model, and tells if a passage supports a sentence."""

import base64
import json
import math
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np
from cachetools import FIFOCache, LRUCache
from typing_extensions import override

from cragside.adapters.embedded.answers import Kind, asked_kind, has_kind, states_something
from cragside.adapters.embedded.embedder import Lexicon, WordLlamaEmbedder
from cragside.adapters.embedded.features import (
    FEATURES,
    Analyses,
    Background,
    Excerpt,
    Features,
    PassageWords,
    QuestionWords,
    compare,
    covered,
    novelty,
    read_question,
    words_found,
)
from cragside.adapters.embedded.names import is_english, mentions, misspells, names_in, resembles
from cragside.adapters.embedded.numbers import named_numbers
from cragside.adapters.embedded.words import ENGLISH, Language, stem, words
from cragside.application.answerer import Support
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.ports.embedder import Vectors
from cragside.ports.models import RelevanceGrader

# With fewer content words that the question lacks, a passage may be an echo of it: a question or a title. Unless it
# states something, its score falls in proportion.
_ENOUGH_NEW_WORDS = 5
# A passage about another number or name than the question's counts half, and so does one without the kind of answer
# that is asked for: too little for the threshold, enough to be shown as weak evidence where the web cannot be asked.
# Lower scores are weak evidence at most, and stay.
_INEXACT, _TELLING = 0.5, 0.3
# Shorter numbers may be a part of a date or of another number.
_LONG_FORM = 4


@dataclass(frozen=True)
class Exactness:
    """Holds what a question names: another number or name, however near, is another thing. And the answer it wants."""

    question: QuestionWords
    text: str
    lexicon: Lexicon

    def share(self, score: float, excerpt: Excerpt, passage: PassageWords) -> float:
        """Tell how much of a score to keep.

        Less for an echo of the question, for a passage about another number or name, and for one that has nothing of
        the kind that is asked for beside the question's words.
        """
        new = novelty(self.question, passage)
        short = new < _ENOUGH_NEW_WORDS
        echo = short and not (new and states_something(excerpt.text, self.question, passage.language))
        share = new / _ENOUGH_NEW_WORDS if echo else 1.0
        if score * share <= _TELLING:
            return share
        lacking = self._lacks_one(passage, short=short) or not self._has_kind(excerpt, passage.language)
        return share * _INEXACT if lacking else share

    @cached_property
    def _kind(self) -> Kind | None:
        return asked_kind(self.text)

    @cached_property
    def _numbers(self) -> list[frozenset[str]]:
        return named_numbers(self.text)

    @cached_property
    def _names(self) -> list[str]:
        if not is_english(self.question.every_word):
            return []
        return names_in(self.question.content, self.lexicon, rare=False)

    @cached_property
    def _rare_names(self) -> list[str]:
        return names_in(self._names, self.lexicon, rare=True)

    def _has_kind(self, excerpt: Excerpt, language: Language) -> bool:
        every_word = self.question.every_word
        return self._kind is None or has_kind(self._kind, every_word, excerpt.title, excerpt.text, language)

    def _lacks_one(self, passage: PassageWords, *, short: bool) -> bool:
        """Tell if the passage, title included, lacks a name, number or date. A short one has well-known names too."""
        names = self._names if short else self._rare_names
        dates = [date for date in self.question.dates if date.sure]
        if dates and not passage.states_any(dates) and not passage.may_move_any(dates):
            return True
        if not self._numbers and not names:
            return False
        # A year or a code that stands there as it is needs no look at all forms of the passage's numbers.
        for forms in self._numbers:
            as_it_is = max(map(len, forms)) >= _LONG_FORM and passage.has_word(forms)
            if not as_it_is and not passage.has_number(forms):
                return True
        missing = [name for name in names if not passage.has_stem(stem(name, passage.language))]
        if not missing or not passage.is_english:
            return False
        found = passage.every_word()
        distinct = set(found)
        suspects = [
            name
            for name in missing
            if not misspells(name, distinct, self.lexicon) and (short or resembles(name, distinct))
        ]
        return not all(mentions(name, self.question.every_word, found) for name in suspects)


WEIGHTS_FILE = "grader_weights.json"

_REMEMBERED_PASSAGES = 2048
_REMEMBERED_QUESTIONS = 128


@dataclass(frozen=True, slots=True)
class GraderWeights:
    """The fitted model: one coefficient for each of `FEATURES`, an intercept, and the background of similarity.

    `languages` has the coefficients and intercepts of languages other than English.
    """

    coefficients: Vectors
    intercept: float
    background: Background
    languages: Mapping[Language, tuple[Vectors, float]] = field(default_factory=dict)

    def probability(self, features: Features, language: Language) -> float:
        """Return the relevance (0..1) of a passage with these features."""
        coefficients, intercept = self.languages.get(language, (self.coefficients, self.intercept))
        logit = float(features @ coefficients) + intercept
        return 1.0 / (1.0 + math.exp(-min(max(logit, -40.0), 40.0)))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "GraderWeights":
        """Read the output of `evals/calibrate_grader.py` and `evals/calibrate_languages.py`."""
        if tuple(data["features"]) != FEATURES:
            raise ValueError(f"weights are for the features {data['features']}")
        background = data["background"]
        dimensions = int(background["dimensions"])
        languages: Mapping[Language, Any] = data["languages"]
        return cls(
            coefficients=np.array(data["coefficients"], dtype=np.float64),
            intercept=float(data["intercept"]),
            background=Background(
                mean=_halves(background["mean"]),
                axes=_halves(background["axes"]).reshape(-1, dimensions),
                variances=np.array(background["variances"], dtype=np.float32),
                rest=float(background["rest"]),
                means={language: _halves(fitted["mean"]) for language, fitted in languages.items()},
            ),
            languages={
                language: (np.array(fitted["coefficients"], dtype=np.float64), float(fitted["intercept"]))
                for language, fitted in languages.items()
            },
        )


class EmbeddedGrader(RelevanceGrader):
    """Grades with WordLlama's vectors and the words themselves. Each document is judged on its own.

    The score is the probability that a retrieved passage is relevant, fitted on many sources (evals/README.md). It says
    whether a passage is about the question, not whether it has the answer. Outside that model, echoes of the question,
    passages about another number or name, and those without the kind of answer that is asked for keep a part of
    their score. The analyses of the last 2,048 passages and the scores of the last 128 questions are cached; a cached
    passage takes about 0.1 ms.
    """

    def __init__(self, embedder: WordLlamaEmbedder) -> None:
        self._analyses = Analyses(embedder, _REMEMBERED_PASSAGES)
        self._kept_excerpts: LRUCache[Excerpt, Excerpt] = LRUCache(_REMEMBERED_PASSAGES)
        self._questions: FIFOCache[str, dict[Excerpt, float]] = FIFOCache(_REMEMBERED_QUESTIONS)
        self._lock = threading.Lock()

    @override
    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        if not documents:
            return []
        return self.scores(query, [Excerpt.of(document) for document in documents])

    async def matches(self, query: str, documents: Sequence[Document], *, near: bool = False) -> list[tuple[str, ...]]:
        """Return the query's content words, in lower case, that each document or its title has, in the query's order.

        A word counts in any inflection. With `near`, return those of the title and of the place that has most of them.
        """
        with self._lock:
            lexicon = self._analyses.lexicon()
            question = read_question(query, lexicon)
            passages = [self._analyses.passage(Excerpt.of(document), lexicon) for document in documents]
            return [words_found(question, passage, near=near) for passage in passages]

    def scores(self, query: str, passages: Sequence[tuple[str, str] | Excerpt]) -> list[float]:
        """`grade` for excerpts or (title, text) pairs, without an event loop."""
        with self._lock:
            # Passages that ranking has scored are soon graded again.
            known = self._questions.setdefault(query, {})
            asked = [Excerpt(*passage) for passage in passages]
            fresh = [self._kept(excerpt) for excerpt in dict.fromkeys(asked) if excerpt not in known]
            if fresh:
                known.update(zip(fresh, self._compute(query, fresh), strict=True))
            return [known[excerpt] for excerpt in asked]

    def _compute(self, query: str, excerpts: Sequence[Excerpt]) -> list[float]:
        weights = packaged_weights()
        lexicon = self._analyses.lexicon()
        question = read_question(query, lexicon)
        if not question.content:
            return [0.0] * len(excerpts)
        passages = [self._analyses.passage(excerpt, lexicon) for excerpt in excerpts]
        table = compare(question, passages, lexicon, weights.background)
        # A passage in another language has an English question's words by chance: "list all minutes", "45 Minuten".
        english = question.is_english
        scores = [
            weights.probability(features, "english" if english else passage.language)
            for features, passage in zip(table, passages, strict=True)
        ]
        exact = Exactness(question, query, lexicon)
        return [
            score * exact.share(score, excerpt, passage)
            for score, excerpt, passage in zip(scores, excerpts, passages, strict=True)
        ]

    def _kept(self, excerpt: Excerpt) -> Excerpt:
        """Return the excerpt of the same text that is kept already, so that many questions remember one copy of it."""
        return self._kept_excerpts.setdefault(excerpt, excerpt)


@cache
def packaged_weights() -> GraderWeights:
    """Return the weights of the package. Raises `ServiceUnavailable("grader", ...)` if they cannot be read."""
    try:
        text = resources.files(__package__).joinpath(WEIGHTS_FILE).read_text(encoding="utf-8")
        return GraderWeights.from_json(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServiceUnavailable("grader", f"The grader's weights ({WEIGHTS_FILE}) cannot be read.") from error


def _halves(encoded: str) -> Vectors:
    return np.frombuffer(base64.b64decode(encoded), dtype="<f2").astype(np.float32)


# The least coverage of a supported sentence, chosen on the training half of CLAP-NQ (`evals/citations.py`).
LEAST_COVERAGE = 0.7
_REMEMBERED = 64
# After the first word of a sentence, which has a capital anyway.
_NAME_INSIDE = re.compile(r"(?<=[\w,;)’'\"”] )[A-Z][\w’'-]{2,}")


class EmbeddedSupportJudge:
    """Compares a sentence with a passage by the grader's features. It takes milliseconds, and may run in any thread.

    The score is the share of the sentence's content words that the passage has. Words count by their weight, and in any
    inflection; one that is missing counts as far as a related word is there. A number, code, date or rare name that
    the passage lacks means unsupported. Negations and who did what to whom are not compared.
    """

    def __init__(self, embedder: WordLlamaEmbedder) -> None:
        self._analyses = Analyses(embedder, _REMEMBERED)  # its own: the grader's are in use on the event loop
        self._lock = threading.Lock()

    def judge(self, sentence: str, title: str, text: str) -> Support:
        """Tell if the passage, title included, supports the sentence."""
        with self._lock:
            lexicon = self._analyses.lexicon()
            claim = read_question(sentence, lexicon)
            if not claim.content:
                return Support(0.0, supported=False)
            passage = self._analyses.passage(Excerpt(title, text), lexicon)
            coverage = covered(claim, passage, lexicon)
            names = [*names_in(claim.content, lexicon, rare=True), *_capitalised(sentence)]
            exact = _has_numbers(sentence, passage) and all(
                passage.states_any([date]) for date in claim.dates if date.sure
            )
            exact = exact and _has_names(names, claim, passage)
            return Support(coverage, supported=exact and coverage >= LEAST_COVERAGE)


def _has_numbers(sentence: str, passage: PassageWords) -> bool:
    """Tell if a passage has every number and code of a sentence, however it is written there."""
    named = named_numbers(sentence, counts=True)
    return all(passage.has_number(forms) or passage.has_word(forms) for forms in named)


def _capitalised(sentence: str) -> list[str]:
    """Return the words with a capital inside a sentence, in lower case: names, with London and the Bible."""
    return [word for match in _NAME_INSIDE.findall(sentence) for word in words(match)]


def _has_names(names: Sequence[str], claim: QuestionWords, passage: PassageWords) -> bool:
    """Tell if a passage has each name of a sentence, in any inflection.

    True in languages other than English: their words are in no vocabulary, and German has capitals everywhere.
    """
    if not names or not is_english(claim.every_word) or not passage.is_english:
        return True
    missing = [name for name in names if name not in ENGLISH and not passage.has_stem(stem(name, passage.language))]
    found = passage.every_word() if missing else []
    return all(mentions(name, claim.every_word, found) for name in missing)
