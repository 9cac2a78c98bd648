"""Grades with a chat model: one call for all documents, or one call each if the model cannot grade several."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence

from cachetools import TTLCache
from typing_extensions import override

from cragside.adapters.model_host import grading
from cragside.adapters.model_host.text import abridged
from cragside.adapters.model_host.text_host import TextHost
from cragside.domain.document import Document
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.token_counts import most_tokens
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.relevance_grader import Grades, RelevanceGrader

_SINGLE_SECONDS = 600.0
_LONGEST_DOCUMENT = 4000
_SHORTEST_DOCUMENT = 400
_FRAME_TOKENS = 100  # for the tags and the title of a document
_MODELS_REMEMBERED = 64


class HostedGrader(RelevanceGrader):
    """Grades with a chat model, or with `embedded` if the host has none.

    `context` bounds the tokens of one call. Documents are cut to share it. If each would get less than 400 characters,
    there are several calls.
    """

    def __init__(
        self,
        host: TextHost,
        embedded: RelevanceGrader,
        *,
        context: int = 8192,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._host = host
        self._embedded = embedded
        self._context = context
        # Models that failed to grade several documents at once.
        self._grading_singly: TTLCache[str, bool] = TTLCache(_MODELS_REMEMBERED, _SINGLE_SECONDS, timer=clock.monotonic)

    @override
    async def grade(self, query: str, documents: Sequence[Document], *, model: str | None = None) -> list[float]:
        return (await self.judge(query, documents, model=model)).scores

    @override
    async def judge(self, query: str, documents: Sequence[Document], *, model: str | None = None) -> Grades:
        if not documents:
            return Grades([])
        try:
            chosen = await self._host.choose(model)
            if chosen is not None:
                return Grades(await self._graded(chosen, query, documents), chosen)
        except ServiceUnavailable as failure:
            raise ServiceUnavailable("grader", failure.message) from failure
        return Grades(await self._embedded.grade(query, documents, model=model))

    async def _graded(self, model: str, query: str, documents: Sequence[Document]) -> list[float]:
        if len(documents) > 1 and model in self._grading_singly:
            return await self._one_by_one(model, query, documents)
        size, characters = await self._share(model, query, documents)
        batches = [documents[start : start + size] for start in range(0, len(documents), size)]
        graded = await _all(self._batch(model, query, batch, characters) for batch in batches)
        return [score for scores in graded for score in scores]

    async def _batch(self, model: str, query: str, batch: Sequence[Document], characters: int) -> list[float]:
        scores = await self._asked(model, query, batch, characters)
        if scores is not None:
            return scores
        if len(batch) == 1:
            raise ServiceUnavailable("grader", f"{model} did not answer with a score")
        self._grading_singly[model] = True
        return await self._one_by_one(model, query, batch)

    async def _one_by_one(self, model: str, query: str, documents: Sequence[Document]) -> list[float]:
        _, characters = await self._share(model, query, documents[:1])
        graded = await _all(self._batch(model, query, [document], characters) for document in documents)
        return [score for scores in graded for score in scores]

    async def _asked(
        self, model: str, query: str, documents: Sequence[Document], characters: int
    ) -> list[float] | None:
        count = len(documents)
        reply = await self._host.chat(
            model,
            grading.question(query, documents, characters_each=characters),
            system=grading.SYSTEM,
            schema=grading.answer_schema(count),
            max_tokens=grading.answer_tokens(count),
        )
        return grading.scores_in(reply.text, count) if reply.complete else None

    async def _share(self, model: str, query: str, documents: Sequence[Document]) -> tuple[int, int]:
        """The number of documents in one call, and the characters of each, that fit the model's context."""
        context = min(self._context, await self._host.context_length(model) or self._context)
        asked = abridged(query, grading.QUESTION_CHARACTERS)
        left = context - most_tokens(grading.SYSTEM) - 2 * most_tokens(asked) - 100
        # A character of a number or of Chinese takes a token, one of English a third of a token.
        density = max(most_tokens(text) / len(text) for text in (d.content[:_LONGEST_DOCUMENT] for d in documents))
        shortest = min(_SHORTEST_DOCUMENT * density, left)
        size = max(1, min(len(documents), int(left // (shortest + _FRAME_TOKENS))))
        each = left // size - grading.answer_tokens(1) - _FRAME_TOKENS
        return size, max(1, min(_LONGEST_DOCUMENT, int(each / density)))


async def _all(calls: Iterable[Coroutine[None, None, list[float]]]) -> list[list[float]]:
    """The answers of all calls. The first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
