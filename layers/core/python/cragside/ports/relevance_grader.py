"""Grades evidence."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.document import Document
from cragside.domain.reading import Reading

# The name of the grader that needs no chat model.
EMBEDDED_GRADER = "embedded"
# The name of the grader that is a rerank endpoint.
RERANK_GRADER = "rerank"


class RelevanceGrader(Protocol):
    """Estimates how probably each document is relevant to a query. `name` is that of the grader."""

    name: str = EMBEDDED_GRADER

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        """One probability (0..1) for each document, in their order; [] for none.

        Raises `ServiceUnavailable("grader", ...)`.
        """
        ...

    async def grade_read(self, reading: Reading, documents: Sequence[Document]) -> list[float]:
        """`grade`, with the question as each document puts it."""
        asked = [reading.asked_of(document.whole) for document in documents]
        scores = dict[int, float]()
        for question in dict.fromkeys(asked):
            places = [place for place, each in enumerate(asked) if each == question]
            grades = await self.grade(question, [documents[place] for place in places])
            scores |= zip(places, grades, strict=True)
        return [scores[place] for place in range(len(documents))]
