"""Decides which graded passages are evidence, and whether they suffice."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from cragside.domain.evidence import Document

Verdict = Literal["local", "web", "mixed", "none"]
DEFAULT_THRESHOLD = 0.6
# The search engine has already ranked its results, so only clearly irrelevant ones are dropped.
PLAUSIBLE = 0.05
# A passage about one of several things needs more than this share of the best score.
_BESIDE = 0.4


@dataclass(frozen=True, slots=True)
class DecisionPolicy:
    """Decides when local evidence suffices. A passage passes above `threshold`, not at it.

    `any`: one passing passage suffices. `mean`: the mean score must pass as well.
    """

    threshold: float = DEFAULT_THRESHOLD
    rule: Literal["any", "mean"] = "any"

    def passing(self, documents: Sequence[Document]) -> list[Document]:
        """Return the graded documents above the threshold, best first."""
        kept = [document for document in documents if (document.score or 0.0) > self.threshold]
        return sorted(kept, key=lambda document: -(document.score or 0.0))

    def beside(self, documents: Sequence[Document]) -> list[Document]:
        """Return the evidence for several things, best first. If one passage passes, so do those little worse."""
        passing = self.passing(documents)
        if not passing:
            return []
        least = (passing[0].score or 0.0) * _BESIDE
        return DecisionPolicy(min(self.threshold, least)).passing(documents)

    @property
    def weak(self) -> float:
        """A third of the threshold. Evidence has to exceed it when the web cannot be searched."""
        return round(self.threshold / 3, 6)

    def best_effort(self, documents: Sequence[Document]) -> list[Document]:
        """Return what passes a third of the threshold, best first: the evidence when the web cannot be searched."""
        return DecisionPolicy(self.weak).passing(documents)

    def plausible(self, documents: Sequence[Document]) -> list[Document]:
        """Return the web results that are not clearly irrelevant, best first."""
        return DecisionPolicy(PLAUSIBLE).passing(documents)

    def suffices(self, documents: Sequence[Document]) -> bool:
        """Tell if local evidence suffices. If not, the web is searched."""
        if not self.passing(documents):
            return False
        if self.rule == "any":
            return True
        return sum(document.score or 0.0 for document in documents) / len(documents) > self.threshold


def verdict_of(documents: Sequence[Document]) -> Verdict:
    """Name the source of the injected evidence."""
    sources = {document.source for document in documents}
    if not sources:
        return "none"
    if sources == {"local", "web"}:
        return "mixed"
    return "local" if sources == {"local"} else "web"


# A judgement adds _SLOPE * its log-odds + _INTERCEPT to the log-odds of a grade, if that is more than nothing: one
# above 0.83 counts. They are fitted on questions for which the embedded grader found nothing (evals/README.md).
_SLOPE, _INTERCEPT = 1.0, -1.6
# A judgement adds at most so much: from 0.25 to 0.6.
_MOST = 1.5
_YES, _NO = 0.83, 0.3
_CERTAIN = 0.001


@dataclass(frozen=True, slots=True)
class Judgement:
    """The probability that a passage answers, by a chat model that read no other passage, and its embedded grade."""

    model: str
    probability: float
    grade: float

    @property
    def blend(self) -> float:
        """The grade (0..1) that counts, from both judgements."""
        return blended(self.grade, self.probability)

    @property
    def contradicts(self) -> bool:
        """Tell if the model is sure of an answer, and the embedded grader that there is none."""
        return self.grade < _NO and self.probability > _YES


def blended(grade: float, judgement: float) -> float:
    """Blend a passage's embedded grade with the probability of an answer, to a grade (0..1) that never falls."""
    added = min(max(_SLOPE * log_odds(judgement) + _INTERCEPT, 0.0), _MOST)
    return 1.0 / (1.0 + math.exp(-(log_odds(grade) + added)))


def may_pass(grade: float, threshold: float) -> bool:
    """Tell if a judgement could lift a passage with this embedded grade above the threshold."""
    return blended(grade, 1.0) > threshold


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, within those of 0.001 and 0.999."""
    bounded = min(max(probability, _CERTAIN), 1.0 - _CERTAIN)
    return math.log(bounded / (1.0 - bounded))


T = TypeVar("T")

_SHARE_OF_ONE = 0.6


def varied(ranked: Sequence[T], most: int, origin: Callable[[T], str]) -> list[T]:
    """Take the first `most`, in their order. One `origin` gets three fifths of the places at most, if others want them.

    So a document whose title claims to be about everything cannot keep all others out.
    """
    share = math.ceil(most * _SHARE_OF_ONE)
    taken = Counter[str]()
    chosen: list[int] = []
    beyond: list[int] = []
    for number, each in enumerate(map(origin, ranked)):
        taken[each] += 1
        (chosen if taken[each] <= share else beyond).append(number)
    return [ranked[number] for number in sorted([*chosen, *beyond][:most])]


def document_of_evidence(passage: Document) -> str:
    """Return the document of a passage; a page of the web is one by itself."""
    return str(passage.metadata.get("documentId") or passage.id)
