"""Grades evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cragside.domain.document import Document
from cragside.domain.reading import Reading

# The name of the grader that needs no chat model.
EMBEDDED_GRADER = "embedded"
# The name of the grader that is a rerank endpoint.
RERANK_GRADER = "rerank"


@dataclass(frozen=True, slots=True)
class Grades:
    """Probabilities, and who gave them: `embedded` or `rerank`."""

    scores: list[float]
    grader: str = EMBEDDED_GRADER


class RelevanceGrader(Protocol):
    """Estimates how probably each document is relevant to a query."""

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        """One probability (0..1) for each document, in their order; [] for none.

        Raises `ServiceUnavailable("grader", ...)`.
        """
        ...

    async def judge(self, query: str, documents: Sequence[Document]) -> Grades:
        """`grade`, with the name of the grader. Raises what `grade` raises."""
        return Grades(await self.grade(query, documents))

    async def judge_read(self, reading: Reading, documents: Sequence[Document]) -> Grades:
        """`judge`, with the question as each document puts it."""
        asked = [reading.asked_of(document.whole) for document in documents]
        scores, grader = dict[int, float](), EMBEDDED_GRADER
        for question in dict.fromkeys(asked) or [reading.text]:
            places = [place for place, each in enumerate(asked) if each == question]
            grades = await self.judge(question, [documents[place] for place in places])
            scores |= zip(places, grades.scores, strict=True)
            grader = grades.grader
        return Grades([scores[place] for place in range(len(documents))], grader)
