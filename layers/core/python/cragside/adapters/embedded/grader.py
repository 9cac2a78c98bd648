"""Relevance without a language model: a calibrated logistic regression."""

import base64
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from cachetools import FIFOCache, LRUCache
from typing_extensions import override

from cragside.adapters.embedded.answers import Kind, asked_kind, has_kind
from cragside.adapters.embedded.exactness import Identifiers
from cragside.adapters.embedded.features import FEATURES, Background, Features, compare, novelty, words_found
from cragside.adapters.embedded.lexicon import Lexicon, TokenVectors
from cragside.adapters.embedded.passage_words import PassageWords, read_passage
from cragside.adapters.embedded.question_words import read_question
from cragside.adapters.embedded.statements import states_something
from cragside.adapters.embedded.words import Language
from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.embedder import Vectors
from cragside.ports.models import RelevanceGrader, WordMatcher

WEIGHTS_FILE = "grader_weights.json"

_REMEMBERED_PASSAGES = 2048
_REMEMBERED_QUESTIONS = 128
# With fewer content words that the question lacks, a passage may be an echo of it: a question or a title. Unless it
# states something, its score falls in proportion.
_ENOUGH_NEW_WORDS = 5
# A passage about another number or name than the question's counts half, and so does one without the kind of answer
# that is asked for: too little for the threshold, enough to be shown as weak evidence where the web cannot be asked.
# Lower scores are weak evidence at most, and stay.
_INEXACT, _TELLING = 0.5, 0.3


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
        """The relevance (0..1) of a passage with these features."""
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


class Excerpt(NamedTuple):
    """A passage, and where it is from, as far as the title does not say it: file name and section."""

    title: str
    text: str
    place: str = ""

    @classmethod
    def of(cls, document: Document) -> "Excerpt":
        """The passage of a document."""
        place = " ".join(str(document.metadata.get(name) or "") for name in ("filename", "section"))
        return cls(document.title, document.content, place.strip())


class EmbeddedGrader(RelevanceGrader, WordMatcher):
    """Grades with WordLlama's vectors and the words themselves. Each document is judged on its own.

    The score is the probability that a retrieved passage is relevant, fitted on many sources (evals/README.md). It says
    whether a passage is about the question, not whether it has the answer. Outside that model, echoes of the question,
    passages about another number or name, and those without the kind of answer that is asked for keep a part of
    their score. The analyses of the last 2,048 passages and the scores of the last 128 questions are cached; a cached
    passage takes about 0.1 ms.
    """

    def __init__(self, embedder: TokenVectors, *, weights: GraderWeights | None = None) -> None:
        self._embedder = embedder
        self._weights = weights
        self._lexicon: Lexicon | None = None
        self._passages: LRUCache[Excerpt, PassageWords] = LRUCache(_REMEMBERED_PASSAGES)
        self._kept_excerpts: LRUCache[Excerpt, Excerpt] = LRUCache(_REMEMBERED_PASSAGES)
        self._questions: FIFOCache[str, dict[Excerpt, float]] = FIFOCache(_REMEMBERED_QUESTIONS)
        self._lock = threading.Lock()

    @override
    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        if not documents:
            return []
        return self.scores(query, [Excerpt.of(document) for document in documents])

    @override
    async def matches(self, query: str, documents: Sequence[Document], *, near: bool = False) -> list[tuple[str, ...]]:
        with self._lock:
            lexicon = self._ready_lexicon()
            question = read_question(query, lexicon)
            passages = [self._passage(Excerpt.of(document), lexicon) for document in documents]
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
        weights = self._weights = self._weights or packaged_weights()
        lexicon = self._ready_lexicon()
        question = read_question(query, lexicon)
        if not question.content:
            return [0.0] * len(excerpts)
        passages = [self._passage(excerpt, lexicon) for excerpt in excerpts]
        table = compare(question, passages, lexicon, weights.background)
        # A passage in another language has an English question's words by chance: "list all minutes", "45 Minuten".
        english = question.is_english
        scores = [
            weights.probability(features, "english" if english else passage.language)
            for features, passage in zip(table, passages, strict=True)
        ]
        exact = _Exactly(Identifiers(question, query, lexicon), asked_kind(query))
        return [
            score * exact.share(score, excerpt, passage)
            for score, excerpt, passage in zip(scores, excerpts, passages, strict=True)
        ]

    def _kept(self, excerpt: Excerpt) -> Excerpt:
        """The equal one that is already kept: a store reads a text anew each time, and each question remembers it."""
        return self._kept_excerpts.setdefault(excerpt, excerpt)

    def _passage(self, excerpt: Excerpt, lexicon: Lexicon) -> PassageWords:
        passage = self._passages.get(excerpt)
        if passage is None:
            passage = self._passages[excerpt] = read_passage(excerpt.title, excerpt.text, lexicon, place=excerpt.place)
        return passage

    def _ready_lexicon(self) -> Lexicon:
        if self._lexicon is None:
            self._lexicon = Lexicon(self._embedder)
        elif self._lexicon.full:
            self._lexicon.clear()
            self._passages.clear()
        return self._lexicon


@dataclass(frozen=True, slots=True)
class _Exactly:
    """Holds the names, numbers and kind of answer that a question asks for exactly."""

    named: Identifiers
    kind: Kind | None

    def share(self, score: float, excerpt: Excerpt, passage: PassageWords) -> float:
        """Tell how much of a score to keep.

        Less for an echo of the question, for a passage about another number or name, and for one that has nothing of
        the kind that is asked for beside the question's words.
        """
        new = novelty(self.named.question, passage)
        short = new < _ENOUGH_NEW_WORDS
        echo = short and not (new and states_something(excerpt.text, self.named.question, passage.language))
        share = new / _ENOUGH_NEW_WORDS if echo else 1.0
        if score * share <= _TELLING:
            return share
        lacking = self.named.lacking(excerpt.title, excerpt.text, passage, short=short) or not self._has_kind(
            excerpt, passage.language
        )
        return share * _INEXACT if lacking else share

    def _has_kind(self, excerpt: Excerpt, language: Language) -> bool:
        every_word = self.named.question.every_word
        return self.kind is None or has_kind(self.kind, every_word, excerpt.title, excerpt.text, language)


@cache
def packaged_weights() -> GraderWeights:
    """The weights of the package. Raises `ServiceUnavailable("grader", ...)` if they cannot be read."""
    try:
        text = resources.files(__package__).joinpath(WEIGHTS_FILE).read_text(encoding="utf-8")
        return GraderWeights.from_json(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ServiceUnavailable("grader", f"The grader's weights ({WEIGHTS_FILE}) cannot be read.") from error


def _halves(encoded: str) -> Vectors:
    return np.frombuffer(base64.b64decode(encoded), dtype="<f2").astype(np.float32)
