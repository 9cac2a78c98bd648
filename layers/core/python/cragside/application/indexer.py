"""The use case: one step of indexing a document."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from cragside.domain.errors import CragsideError
from cragside.domain.indexing import Passage, Task
from cragside.ports.annotator import DESCRIBED_CHARACTERS, Annotator
from cragside.ports.workspaces import Workspaces


class Indexer:
    """Runs tasks. A task can be repeated, also after an interruption: finished work is not done twice."""

    def __init__(self, workspaces: Workspaces, annotator: Annotator) -> None:
        self._workspaces = workspaces
        self._annotator = annotator

    async def do(self, task: Task) -> None:
        """Run a task. A task of a deleted document or an old version does nothing.

        Raises `ServiceUnavailable` with the component that failed, and `ValidationError` for text that cannot be
        indexed.
        """
        if task.stage == "embed":
            await (await self._workspaces.open(task.workspace)).work.embed(task)
        else:
            await self._annotate(task)

    async def failed(self, task: Task, reason: str) -> None:
        """Record that a task is given up."""
        await (await self._workspaces.open(task.workspace)).work.failed(task, reason)

    async def _annotate(self, task: Task) -> None:
        part = (await self._workspaces.open(task.workspace)).work
        if not await part.begin_enrichment(task):
            return
        try:
            library = (await self._workspaces.open(task.workspace)).documents
            passages = await library.passages(task.document_id, task.part)
            tier2 = await asyncio.to_thread(lambda: [self._annotator.tier2(passage.text) for passage in passages])
            await part.annotate(task, tier2, await self._tier3(task, passages))
            await part.extend_graph(task)
        except BaseException:  # also when cancelled: the status must not say that work goes on
            with suppress(CragsideError):
                await part.give_back(task)
            raise

    async def _tier3(self, task: Task, passages: Sequence[Passage]) -> Mapping[str, Any] | None:
        """The model's description of the document, with its first part. Other parts have none: one call a document."""
        if task.part > 0 or not passages:
            return None
        library = (await self._workspaces.open(task.workspace)).documents
        record = await library.document(task.document_id)
        if record is None:
            return None
        text = "\n".join(passage.text for passage in passages)
        return await self._annotator.tier3(record.doc_type, text[:DESCRIBED_CHARACTERS])
