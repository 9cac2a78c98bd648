"""Annotations of passages and documents: tiers 2 and 3 of rag-stack's enrichment."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from cragside.domain.document import DocType
from cragside.domain.errors import CragsideError
from cragside.domain.indexing import Passage, Task
from cragside.ports.workspaces import Workspaces

# As in rag-stack, tier 3 describes the first 8000 characters of a document.
DESCRIBED_CHARACTERS = 8000


class Annotator(Protocol):
    """Describes passages and documents."""

    def tier2(self, text: str) -> dict[str, Any]:
        """`{"entities": [{"text", "label"}], "keywords": [at most 10], "language": ISO 639-1 or None}`; no model."""

    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        """The fields of tier 3 for the type, such as `{"summary", "key_entities"}` for a text.

        `by` names what found them. Raises `ServiceUnavailable("annotator", ...)` if the model does not answer. If its
        answer is invalid, rules find the fields instead, and `degraded` says so.
        """


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
