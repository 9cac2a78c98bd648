"""Grades passages, with another grader where the first one fails."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.outcome import Degradation
from cragside.domain.reading import Reading
from cragside.ports.relevance_grader import RelevanceGrader

T = TypeVar("T")


async def graded(
    reading: Reading,
    documents: Sequence[Document],
    *,
    grader: RelevanceGrader,
    embedded: RelevanceGrader,
    seconds: float,
    model: str | None = None,
) -> tuple[list[Document], list[Degradation], str]:
    """The documents with their relevance, best first, what failed, and the name of their grader.

    If `grader` fails within its time, `embedded` replaces it.
    """
    degraded: list[Degradation] = []
    try:
        grades = await within(seconds, "grader", grader.judge_read(reading, documents, model=model))
    except ServiceUnavailable as error:
        grades = await embedded.judge_read(reading, documents)
        reason = f"{error.message.rstrip('.')}. The embedded grader stepped in."
        degraded = [Degradation("grader", reason)]
    return by_relevance(documents, grades.scores), degraded, grades.grader


def by_relevance(documents: Sequence[Document], scores: Sequence[float]) -> list[Document]:
    """The documents with these scores, best first; equal ones stay in their order."""
    return by_score([document.graded(score) for document, score in zip(documents, scores, strict=True)])


def by_score(documents: Sequence[Document]) -> list[Document]:
    """The graded documents, best first; equal ones stay in their order."""
    return sorted(documents, key=lambda document: -(document.score or 0.0))


async def within(seconds: float, component: str, step: Awaitable[T]) -> T:
    """The result of a step. If its time runs out, the component counts as unavailable."""
    try:
        async with asyncio.timeout(seconds):
            return await step
    except TimeoutError as error:
        raise ServiceUnavailable(component, f"No answer within {seconds:.1f} s.") from error
