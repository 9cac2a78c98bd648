"""Index a part in steps, rebuild a store with another model, and remove what old versions left in the graph.

Each step ends in one transaction.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from cragside.domain.errors import CragsideError, ProcessingError, ServiceUnavailable
from cragside.domain.indexing import Acceptance, DocumentRecord, Task
from cragside.store.chunking import StoredPart, searched_text
from cragside.store.drafts import Draft
from cragside.store.driver import Always, GraphChange, OnceGone, PartVectors, WhileCurrent
from cragside.store.errors import LedgerError, failing_as_unavailable
from cragside.store.ledger import Ledger
from cragside.store.merges import GraphShare, VectorShare
from cragside.store.open_store import Store, StoreAccess, part_lease

# Somebody waits for the answer, while others may write, and a model may be asked to describe what remains.
_AT_ONCE_SECONDS = 2.0

logger = logging.getLogger("cragside")


async def sweep(store: Store) -> None:
    """Take versions that are gone out of the graph, part by part, each in one transaction."""
    if await store.ledger.sweeps():
        async with store.writing() as ledger:
            await _swept(store, ledger)


async def sweep_if_free(store: Store) -> None:
    """Sweep at once, unless somebody is writing to the graph, it takes long, or it fails: a worker does it then."""
    if not await store.ledger.sweeps():
        return
    try:
        async with asyncio.timeout(_AT_ONCE_SECONDS), store.writing_if_free() as ledger:
            if ledger:
                await _swept(store, ledger)
    except Exception as error:
        logger.warning("Workspace %s is swept later: %s", store.workspace, _reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "that takes long"
    if isinstance(error, LedgerError):
        return error.reason
    return error.message if isinstance(error, CragsideError) else type(error).__name__


async def _swept(store: Store, ledger: Ledger) -> None:
    for part in await ledger.removed_parts():
        draft = await forget_graph(store, part)
        await ledger.apply(await draft.change() if draft else GraphChange(), OnceGone(part), store.embedding_model)
    async with store.accepting() as ledger:
        await ledger.drop_swept()
    store.tidy()


async def forget_graph(store: Store, part: StoredPart) -> Draft | None:
    """Draft the graph without what the part contributed; None when it never did. Only while `writing`."""
    draft = Draft(store.engine, store.ledger, without=await store.ledger.chunk_ids(part))
    return draft if await draft.forget(part.key) else None


_CHANGED = "The document has changed meanwhile."


class PartIndexer:
    """Writes a workspace for a worker. A task of a deleted version does nothing.

    Raises `ServiceUnavailable` naming the component that is down, `ProcessingError` if the text cannot be indexed.
    """

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def embed(self, task: Task) -> None:
        """Make the part's text searchable. With a changed document's last part, the version before it is removed."""
        async with self._working(task) as found:
            if found:
                await embed(found[0], task, found[1])
                await sweep(found[0])

    async def embed_at_once(self, accepted: Acceptance) -> Acceptance:
        """Make a text searchable while its client waits, if the embedding model runs in this process.

        Return the document as it is then, with the tasks that are left. After a failure, or if it takes long, the tasks
        stay for a worker. The worker may have one of them in hand: the first of both to write does the work.
        """
        embeds = [task for task in accepted.tasks if task.stage == "embed"]
        if not embeds:
            return accepted
        try:
            async with asyncio.timeout(_AT_ONCE_SECONDS), failing_as_unavailable():
                store = await self._access.existing()
                if store is None or not store.embedder.in_process:
                    return accepted
                for task in embeds:
                    if part := await store.ledger.part(task):
                        await embed(store, task, part)
                return await _as_it_is(store, accepted)
        except Exception as error:
            logger.warning("A worker makes %s searchable: %s", accepted.record.id, _reason(error))
            return accepted

    async def begin_enrichment(self, task: Task) -> bool:
        """Mark the part as being enriched. False when there is nothing left to do for this task.

        If its version was deleted, remove its rest from the graph. Wait while another worker enriches the part.
        """
        async with self._working(task) as found:
            if not found:
                await self._swept()
                return False
            return await begin_enrichment(found[0], task)

    async def give_back(self, task: Task | None = None) -> None:
        """Return the task's unfinished part to the queue; without a task, all unfinished parts.

        Parts that another living worker enriches stay as they are.
        """
        self._access.check_writable()
        async with failing_as_unavailable():
            if store := await self._access.existing():
                await (give_back_all(store) if task is None else give_back(store, task))

    async def annotate(self, task: Task, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None) -> None:
        """Store tier 2 of each passage of the part, in their order, and tier 3 of the part."""
        async with self._working(task) as found:
            if not found:
                return
            store, part = found
            async with store.accepting(task) as ledger:
                await ledger.annotate(part, tier2, tier3)

    async def extend_graph(self, task: Task) -> None:
        """Extract entities and relations of the part's passages and merge them into the graph; the part is enriched.

        What the extraction gave is kept with tier 3 of the part as `extraction`: how many `entities` and `relations`,
        how many lines of the model's answers were `malformed`, and of how many passages the answer was `unusable`.
        Model calls run in parallel and without the graph's lease. Only the merge takes it.
        """
        async with self._working(task, last=True) as found:
            if found and found[1].enrichment != "enriched":
                await extend_graph(found[0], task, found[1])
                await sweep(found[0])

    async def failed(self, task: Task, reason: str) -> None:
        """Record that the task is given up, and why."""
        async with self._working(task) as found:
            if found:
                await mark_failed(found[0], task, found[1], reason)

    async def _swept(self) -> None:
        if store := await self._access.existing():
            await sweep(store)

    @asynccontextmanager
    async def _working(self, task: Task, *, last: bool = False) -> AsyncIterator[tuple[Store, StoredPart] | None]:
        """Yield the store and the part, None when there is nothing to do. After the `last` step others may have it."""
        self._access.check_writable()
        async with failing_as_unavailable():
            store = await self._access.existing()
            if store is None:
                yield None
                return
            store.workers += 1
            try:
                part = await store.ledger.part(task)
                yield (store, part) if part else None
            finally:
                store.workers -= 1
                if last:
                    await store.leases.give(part_lease(task))


async def work_on(store: Store, task: Task) -> None:
    """Do a task at once, annotations aside."""
    if part := await store.ledger.part(task):
        await (embed if task.stage == "embed" else extend_graph)(store, task, part)
        await sweep(store)


async def _as_it_is(store: Store, accepted: Acceptance) -> Acceptance:
    """Return the acceptance with the document of now. A task is left if the version before it has to be swept."""
    record = await store.ledger.record(accepted.record.id)
    if record is None or record.content_hash != accepted.record.content_hash:
        return accepted  # deleted or replaced meanwhile, so its tasks do nothing
    return replace(accepted, record=record, tasks=await store.ledger.tasks(record.id))


async def embed(store: Store, task: Task, part: StoredPart) -> None:
    """Make a part searchable, unless it is. The version before it then waits to be swept."""
    if part.embedded:
        return
    texts = await texts_of(store, part)
    contents = [searched_text(part.title, row["content"]) for row in texts.values()]
    async with _naming_the_cause():
        await store.embedder.keep(task.document_id, contents)
        vectors = await store.engine.chunks_vdb.embedded(contents)
    await enter_vectors(store, task, part, texts, vectors)


async def enter_vectors(
    store: Store, task: Task, part: StoredPart, texts: Mapping[str, Mapping[str, Any]], vectors: np.ndarray[Any, Any]
) -> None:
    """Make the passages of a part searchable, given their vectors in the order of `texts`."""
    rows = {key: {name: row[name] for name in ("content", "full_doc_id", "file_path")} for key, row in texts.items()}
    await store.embeddings.run(VectorShare(task, part, rows, vectors), partial(_enter, store.embedding_model))


async def _enter(model: str, ledger: Ledger, shares: Sequence[VectorShare]) -> bool:
    """Make the passages of parts searchable in one transaction, but for those that are searchable or gone by now."""
    entered: dict[tuple[int, int], PartVectors] = {}
    for share in shares:
        now = await ledger.part(share.task)
        if now is not None and not now.embedded:
            _check_same(share.part, now)
            vectors = PartVectors(share.task.document_id, share.part, share.rows, share.vectors)
            entered[now.version, now.number] = vectors
    if entered:
        await ledger.enter_vectors(list(entered.values()), model)
    return True


async def extend_graph(store: Store, task: Task, part: StoredPart) -> None:
    """Extract entities and relations of a part, and merge them into the graph."""
    draft = Draft(store.engine, store.ledger)
    async with _naming_the_cause():
        extracted = await draft.extract(await texts_of(store, part))
    share = GraphShare(task, part, draft, extracted, await draft.tally(extracted))
    await store.merges.run(share, partial(_merge, store))


async def _merge(store: Store, ledger: Ledger, shares: Sequence[GraphShare]) -> bool:
    """Merge shares into the graph in one transaction. Returns False if a part has gone or is enriched already.

    What a repeated part contributed before is taken out first, in a transaction of its own.
    """
    ledger = store.working(ledger, *(share.task for share in shares))
    for share in shares:
        now = await ledger.part(share.task)
        if now is None or now.enrichment == "enriched":
            return False
        _check_same(share.part, now)
    for share in shares:
        # What it contributed before, when this is a repetition that was asked for.
        if before := await forget_graph(store, share.part):
            await ledger.apply(await before.change(), Always(), store.embedding_model)
    draft = Draft(store.engine, store.ledger)
    await draft.join(*(share.draft for share in shares))
    async with _naming_the_cause():
        await draft.merge({share.part.key: share.extracted for share in shares})
        guard = WhileCurrent([(share.part, share.tally) for share in shares])
        return await ledger.apply(await draft.change(), guard, store.embedding_model)


async def texts_of(store: Store, part: StoredPart) -> dict[str, dict[str, Any]]:
    """Return the part's passages by their ids."""
    ids = await store.ledger.chunk_ids(part)
    found = await store.engine.text_chunks.get_by_ids(ids)
    texts = {key: row for key, row in zip(ids, found, strict=True) if row is not None}
    if not texts:
        raise ServiceUnavailable("knowledge_base", _CHANGED)
    return texts


def _check_same(part: StoredPart, now: StoredPart) -> None:
    """Raises `ServiceUnavailable` if the part has changed. The next try works on it as it is then."""
    if (part.version, part.key, part.title) != (now.version, now.key, now.title):
        raise ServiceUnavailable("knowledge_base", _CHANGED)


async def mark_failed(store: Store, task: Task, part: StoredPart, reason: str) -> None:
    """Record that a task is given up, and why."""
    async with store.accepting() as ledger:
        await ledger.mark_failed(part, task.stage, reason)


async def begin_enrichment(store: Store, task: Task) -> bool:
    """Take the lease of the task's part, which waits while another worker holds it, and mark the part."""
    await store.leases.take(part_lease(task))
    begun = False
    try:
        part = await store.ledger.part(task)
        if part is not None and part.enrichment not in ("enriched", "none"):
            async with store.accepting(task) as ledger:
                await ledger.begin_enrichment(part)
            begun = True
    finally:
        if not begun:
            await store.leases.give(part_lease(task))
    return begun


async def give_back(store: Store, task: Task) -> None:
    """Have the part of a task wait again, unless another worker holds it."""
    name = part_lease(task)
    if not store.leases.of(name) and await store.leases.take_if_free(name) is None:
        return
    try:
        if part := await store.ledger.part(task):
            async with store.accepting(task) as ledger:
                await ledger.give_back(part)
    finally:
        await store.leases.give(name)


async def give_back_all(store: Store) -> None:
    """Have all parts wait again that are marked as being enriched, but for those that other workers hold."""
    for task in await store.ledger.being_enriched():
        await give_back(store, task)
    if await store.ledger.driver.is_untidy():
        store.tidy()


@asynccontextmanager
async def _naming_the_cause() -> AsyncIterator[None]:
    """Raise the failure that LightRAG has wrapped."""
    try:
        yield
    except Exception as error:
        raise _cause(error) from error


def _cause(error: BaseException) -> Exception:
    """Find the failure that LightRAG has wrapped. One that is neither ours nor the disk's is a defect."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CragsideError | OSError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return ProcessingError(f"Indexing failed: {type(error).__name__}.")


_AS_IT_WAS = "The old store is as it was."


async def rebuild(old: Store, fresh: Store, progress: Callable[[str], None]) -> int:
    """Fill an empty store with another one's documents, and all that is known of them. Return their number.

    Documents keep their passages. What was enriched is in the graph again; what was waiting for that, or was given up,
    is as it was. Raises `ServiceUnavailable` that names the document that cannot be indexed. Only while nobody writes
    to the old store.
    """
    documents = await old.ledger.names()
    await fresh.ledger.copy_facts_from(old.ledger)
    for identifier in documents:
        await fresh.ledger.copy_document_from(old.ledger, identifier)
    for identifier, name in documents.items():
        try:
            await _index(old, fresh, identifier)
        except CragsideError as error:
            raise ServiceUnavailable("knowledge_base", f"{name}: {error}. {_AS_IT_WAS}") from error
        progress(name)
    await _check(documents, fresh)
    return len(documents)


async def _index(old: Store, fresh: Store, identifier: str) -> None:
    record, known = await fresh.ledger.record(identifier), await old.ledger.record(identifier)
    if record is None or known is None:
        return  # the check at the end tells
    enriched = {part.number for part in known.parts if part.enrichment == "enriched"}
    for part in record.parts:
        task = _task(fresh, record, part.number)
        if stored := await fresh.ledger.part(task):
            if part.number in enriched:
                await extend_graph(fresh, task, stored)
            await embed(fresh, task, stored)


def _task(store: Store, record: DocumentRecord, number: int) -> Task:
    return Task(store.workspace, record.id, record.content_hash, number, "embed")


async def _check(documents: dict[str, str], fresh: Store) -> None:
    """Raise `ServiceUnavailable` if the new store lacks a document or passage of the old one."""
    passages = sum((await fresh.ledger.counts()).values())
    found = (await fresh.ledger.status(fresh.embedding_model)).passages
    if await fresh.ledger.names() != documents or passages != found:
        raise ServiceUnavailable(
            "knowledge_base", f"Of {len(documents)} documents some would have been lost. {_AS_IT_WAS}"
        )
