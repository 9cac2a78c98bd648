"""Grades evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cragside.domain.document import Document

# The name of the grader that needs no chat model.
EMBEDDED_GRADER = "embedded"
# The name of the grader that is a rerank endpoint.
RERANK_GRADER = "rerank"


@dataclass(frozen=True, slots=True)
class Grades:
    """Probabilities, and who gave them: `embedded`, `rerank`, or the name of a chat model."""

    scores: list[float]
    grader: str = EMBEDDED_GRADER


class RelevanceGrader(Protocol):
    """Estimates how probably each document is relevant to a query."""

    async def grade(self, query: str, documents: Sequence[Document], *, model: str | None = None) -> list[float]:
        """One probability (0..1) for each document, in their order; [] for none.

        `model` is the chat model of the request. Raises `ServiceUnavailable("grader", ...)`.
        """
        ...

    async def judge(self, query: str, documents: Sequence[Document], *, model: str | None = None) -> Grades:
        """`grade`, with the name of the grader. Raises what `grade` raises."""
        return Grades(await self.grade(query, documents, model=model))
