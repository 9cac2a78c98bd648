"""Decides whether graded evidence suffices. Poor retrieval is an outcome, not an error."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cragside.domain.document import Document

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
        """The graded documents above the threshold, best first."""
        kept = [document for document in documents if (document.score or 0.0) > self.threshold]
        return sorted(kept, key=lambda document: -(document.score or 0.0))

    def beside(self, documents: Sequence[Document]) -> list[Document]:
        """The evidence for several things, best first: if one passes, those that are not much worse as well."""
        passing = self.passing(documents)
        if not passing:
            return []
        least = (passing[0].score or 0.0) * _BESIDE
        return DecisionPolicy(min(self.threshold, least)).passing(documents)

    @property
    def weak(self) -> float:
        """A third of the threshold: what evidence has to exceed when the web cannot be searched."""
        return round(self.threshold / 3, 6)

    def best_effort(self, documents: Sequence[Document]) -> list[Document]:
        """The documents above a third of the threshold, best first: the evidence when the web cannot be searched."""
        return DecisionPolicy(self.weak).passing(documents)

    def plausible(self, documents: Sequence[Document]) -> list[Document]:
        """The web results that are not clearly irrelevant, best first."""
        return DecisionPolicy(PLAUSIBLE).passing(documents)

    def suffices(self, documents: Sequence[Document]) -> bool:
        """Whether local evidence suffices. If not, the web is searched."""
        if not self.passing(documents):
            return False
        if self.rule == "any":
            return True
        return sum(document.score or 0.0 for document in documents) / len(documents) > self.threshold


def verdict_of(documents: Sequence[Document]) -> Verdict:
    """Where the injected evidence came from."""
    sources = {document.source for document in documents}
    if not sources:
        return "none"
    if sources == {"local", "web"}:
        return "mixed"
    return "local" if sources == {"local"} else "web"
