"""Whether graded evidence suffices. A poor retrieval is an outcome, not an error: correcting it is the product."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cragside.domain.document import Document

Verdict = Literal["local", "web", "mixed", "none"]
DEFAULT_THRESHOLD = 0.6
# A search engine has already judged its results, so only those that our grader is sure about are dropped.
PLAUSIBLE = 0.05


@dataclass(frozen=True, slots=True)
class DecisionPolicy:
    """When local evidence is good enough: a passage passes only above `threshold`, never at it.

    `any`: one passing passage suffices. `mean`: the mean score has to pass as well.
    """

    threshold: float = DEFAULT_THRESHOLD
    rule: Literal["any", "mean"] = "any"

    def passing(self, documents: Sequence[Document]) -> list[Document]:
        """The graded documents above the threshold, best first."""
        kept = [document for document in documents if (document.score or 0.0) > self.threshold]
        return sorted(kept, key=lambda document: -(document.score or 0.0))

    def best_effort(self, documents: Sequence[Document]) -> list[Document]:
        """What is injected when the web could not be asked: above half the threshold; less than that is noise."""
        return DecisionPolicy(self.threshold / 2).passing(documents)

    def plausible(self, documents: Sequence[Document]) -> list[Document]:
        """Results of a web search that are not plainly beside the point, best first."""
        return DecisionPolicy(PLAUSIBLE).passing(documents)

    def suffices(self, documents: Sequence[Document]) -> bool:
        """True when the local route is kept, False when the web has to be asked."""
        if not self.passing(documents):
            return False
        if self.rule == "any":
            return True
        return sum(document.score or 0.0 for document in documents) / len(documents) > self.threshold


def verdict_of(documents: Sequence[Document]) -> Verdict:
    """Where the evidence that was injected came from."""
    sources = {document.source for document in documents}
    if not sources:
        return "none"
    if sources == {"local", "web"}:
        return "mixed"
    return "local" if sources == {"local"} else "web"
