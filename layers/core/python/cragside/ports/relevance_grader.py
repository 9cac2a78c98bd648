"""Grades evidence."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.document import Document


class RelevanceGrader(Protocol):
    """Estimates how probably each document is relevant to a query."""

    async def grade(self, query: str, documents: Sequence[Document], *, model: str | None = None) -> list[float]:
        """One probability (0..1) for each document, in their order; [] for none.

        `model` is the chat model of the request. Raises `ServiceUnavailable("grader", ...)`.
        """
