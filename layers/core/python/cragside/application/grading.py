"""Grades passages, with the embedded grader where a chat model fails or where the two contradict each other."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TypeVar

from cragside.domain.counted import counted
from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.outcome import Degradation
from cragside.domain.reading import Reading
from cragside.ports.relevance_grader import EMBEDDED_GRADER, RERANK_GRADER, Grades, RelevanceGrader

T = TypeVar("T")

# Grades above and below which a grader is sure.
_SURE_OF, _SURE_AGAINST = 0.6, 0.3


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

    If `grader` fails within its time, `embedded` replaces it. A chat model reads all passages in one prompt, so one of
    them may talk down the others. Where it is sure and `embedded` is sure of the opposite, it is asked about that
    passage alone. Where they still contradict each other, the mean of both counts, which is told.
    """
    degraded: list[Degradation] = []
    ends = asyncio.get_running_loop().time() + seconds
    try:
        grades = await within(seconds, "grader", grader.judge_read(reading, documents, model=model))
        if grades.grader not in (EMBEDDED_GRADER, RERANK_GRADER):
            grades, degraded = await _settled(reading, documents, grades, grader, embedded, ends, model)
    except ServiceUnavailable as error:
        grades = await embedded.judge_read(reading, documents)
        reason = f"{error.message.rstrip('.')}. The embedded grader stepped in."
        degraded = [Degradation("grader", reason)]
    return by_relevance(documents, grades.scores), degraded, grades.grader


async def _settled(
    reading: Reading,
    documents: Sequence[Document],
    grades: Grades,
    grader: RelevanceGrader,
    embedded: RelevanceGrader,
    ends: float,
    model: str | None,
) -> tuple[Grades, list[Degradation]]:
    """The grades of a chat model, asked again and blended where the embedded grader contradicts it."""
    scores, others = list(grades.scores), (await embedded.judge_read(reading, documents)).scores
    contested = [place for place in range(len(documents)) if _contradict(scores[place], others[place])]
    if contested and len(documents) > 1:
        asked = [grader.judge_read(reading, [documents[place]], model=model) for place in contested]
        left = ends - asyncio.get_running_loop().time()
        with suppress(ServiceUnavailable):  # in which case the grades of before count
            apart = await within(left, "grader", asyncio.gather(*asked))
            for place, alone in zip(contested, apart, strict=True):
                scores[place] = alone.scores[0]
    contested = [place for place in contested if _contradict(scores[place], others[place])]
    for place in contested:
        scores[place] = (scores[place] + others[place]) / 2
    told = (
        f"{grades.grader} and the embedded grader contradict each other on {counted(len(contested), 'passage')}. The "
        "mean of both grades counts."
    )
    return Grades(scores, grades.grader), [Degradation("grader", told)] if contested else []


def _contradict(one: float, other: float) -> bool:
    return min(one, other) < _SURE_AGAINST and max(one, other) > _SURE_OF


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
