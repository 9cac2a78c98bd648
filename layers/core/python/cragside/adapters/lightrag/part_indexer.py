"""The steps of indexing a part, each of which ends in one transaction."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from sqlite3 import Connection
from typing import Any
from urllib.parse import quote

import numpy as np

from cragside.adapters.lightrag.catalogue import StoredPart
from cragside.adapters.lightrag.drafts import Draft
from cragside.adapters.lightrag.store import Find, Store, failing_as_unavailable
from cragside.adapters.lightrag.sweeping import forget_graph, sweep
from cragside.adapters.lightrag.versions import retire
from cragside.domain.errors import CragsideError, ProcessingError, ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.part_indexer import PartIndexer

BIND_MODEL = "INSERT OR IGNORE INTO meta VALUES ('embedding_model', ?)"
_CHANGED = "The document has changed meanwhile."
_GIVE_BACK = "UPDATE part SET enrichment = 'pending' WHERE enrichment = 'processing'"


class LightRagPartIndexer(PartIndexer):
    """Works on the store that `find` gives; `refuse` raises for one that is baked."""

    def __init__(self, find: Find, refuse: Callable[[], None]) -> None:
        self._find = find
        self._refuse = refuse

    async def embed(self, task: Task) -> None:
        """Make the part's text searchable."""
        async with self._working(task) as found:
            if found:
                await embed(found[0], task, found[1])
                await sweep(found[0])

    async def begin_enrichment(self, task: Task) -> bool:
        """Mark the part as being enriched; sweep the graph when the version is gone."""
        async with self._working(task) as found:
            if not found:
                await self._swept()
                return False
            if found[1].enrichment in ("enriched", "none"):
                return False
            await _update(found[0], task, "enrichment = 'processing', error = ''")
            return True

    async def give_back(self, task: Task | None = None) -> None:
        """Have what is marked as being enriched wait again."""
        self._refuse()
        async with failing_as_unavailable():
            if store := await self._find():
                await give_back(store, task)

    async def annotate(self, task: Task, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None) -> None:
        """Store tier 2 of each passage of the part, and tier 3 of the part."""
        async with self._working(task) as found:
            if not found:
                return
            store, part = found
            ids = store.catalogue.chunk_ids(part)
            async with store.accepting():
                with store.database.transaction() as connection:
                    connection.executemany(
                        "UPDATE chunk SET tier2 = ? WHERE id = ?",
                        [(json.dumps(dict(tier)), key) for key, tier in zip(ids, tier2, strict=True)],
                    )
                    if tier3 is not None:
                        connection.execute(
                            "UPDATE part SET tier3 = ? WHERE version = ? AND number = ?",
                            (json.dumps(dict(tier3)), part.version, part.number),
                        )

    async def extend_graph(self, task: Task) -> None:
        """Extract entities and relations of the part's passages and merge them; the part is enriched."""
        async with self._working(task) as found:
            if found and found[1].enrichment != "enriched":
                await extend_graph(found[0], task, found[1])
                await sweep(found[0])

    async def failed(self, task: Task, reason: str) -> None:
        """Record that the task is given up, and why."""
        async with self._working(task) as found:
            if found:
                await mark_failed(found[0], task, reason)

    async def _swept(self) -> None:
        if store := await self._find():
            await sweep(store)

    @asynccontextmanager
    async def _working(self, task: Task) -> AsyncIterator[tuple[Store, StoredPart] | None]:
        """The store and the part, None when there is nothing to be done."""
        self._refuse()
        async with failing_as_unavailable():
            store = await self._find()
            if store is None:
                yield None
                return
            store.workers += 1
            try:
                part = store.catalogue.part(task)
                yield (store, part) if part else None
            finally:
                store.workers -= 1


async def embed(store: Store, task: Task, part: StoredPart) -> None:
    """See `PartIndexer.embed`. What is gone then waits to be swept."""
    if part.embedded:
        return
    texts = await texts_of(store, part)
    contents = [row["content"] for row in texts.values()]
    async with _naming_the_cause():
        await store.embedder.keep(task.document_id, contents)
        vectors = await store.engine.chunks_vdb.embedded(contents)
    await enter_vectors(store, task, part, texts, vectors)


async def enter_vectors(
    store: Store, task: Task, part: StoredPart, texts: Mapping[str, Mapping[str, Any]], vectors: np.ndarray[Any, Any]
) -> None:
    """Make the passages of a part searchable, given their vectors in the order of `texts`."""
    rows = {key: {name: row[name] for name in ("content", "full_doc_id", "file_path")} for key, row in texts.items()}
    async with store.accepting():
        now = store.catalogue.part(task)
        if now is None or now.embedded:
            return
        _check_same(part, now)
        with store.database.transaction() as connection:
            store.check_model()
            connection.execute(BIND_MODEL, (store.embedding_model,))
            store.engine.chunks_vdb.write(connection, rows, vectors)
            connection.execute(
                "UPDATE part SET embedded = 1, error = '' WHERE version = ? AND number = ?", (part.version, part.number)
            )
            waiting = connection.execute("SELECT 1 FROM part WHERE version = ? AND NOT embedded", (part.version,))
            if waiting.fetchone() is None:
                retire(store, connection, "state = 'replaced' AND id = ?", task.document_id)


async def extend_graph(store: Store, task: Task, part: StoredPart) -> None:
    """See `PartIndexer.extend_graph`."""
    chunks = await texts_of(store, part)
    draft = Draft(store.engine, store.database)
    async with _naming_the_cause():
        extracted = await draft.extract(chunks)
    tally = json.dumps(await draft.tally(extracted))
    path = next((str(row["file_path"]) for row in chunks.values()), quote(task.document_id, safe=""))

    def enriched(connection: Connection) -> bool:
        store.check_model()
        # A version that went meanwhile must not come back into the graph.
        now = datetime.now(UTC).isoformat()
        row = connection.execute(
            "UPDATE part SET enrichment = 'enriched', enriched_at = ?, error = '',"
            " tier3 = json_set(coalesce(tier3, '{}'), '$.extraction', json(?)) WHERE version = ? AND number = ? AND"
            " version IN (SELECT version FROM document WHERE state = 'current') RETURNING 1",
            (now, tally, part.version, part.number),
        )
        if row.fetchone() is None:
            return False
        connection.execute(BIND_MODEL, (store.embedding_model,))
        return True

    def same_model(_: Connection) -> bool:
        store.check_model()
        return True

    async with store.writing():
        now = store.catalogue.part(task)
        if now is None or now.enrichment == "enriched":
            return
        _check_same(part, now)
        # What it contributed before, when this is a repetition that was asked for.
        if before := await forget_graph(store, part):
            await before.commit(same_model)
        async with _naming_the_cause():
            await draft.merge(part.key, extracted, path)
            await draft.commit(enriched)


async def texts_of(store: Store, part: StoredPart) -> dict[str, dict[str, Any]]:
    """The part's passages by their ids."""
    ids = store.catalogue.chunk_ids(part)
    found = await store.engine.text_chunks.get_by_ids(ids)
    texts = {key: row for key, row in zip(ids, found, strict=True) if row is not None}
    if not texts:
        raise ServiceUnavailable("knowledge_base", _CHANGED)
    return texts


def _check_same(part: StoredPart, now: StoredPart) -> None:
    """The next try works on the part as it is now."""
    if (part.version, part.key) != (now.version, now.key):
        raise ServiceUnavailable("knowledge_base", _CHANGED)


async def mark_failed(store: Store, task: Task, reason: str) -> None:
    """See `PartIndexer.failed`."""
    change = "error = ?" if task.stage == "embed" else "enrichment = 'failed', error = ?"
    await _update(store, task, change, reason)


async def give_back(store: Store, task: Task | None) -> None:
    """See `PartIndexer.give_back`."""
    part = None if task is None else store.catalogue.part(task)
    if task is not None and part is None:
        return
    async with store.accepting():
        with store.database.transaction() as connection:
            if part is None:
                connection.execute(_GIVE_BACK)
                store.tidying.resume()
            else:
                connection.execute(f"{_GIVE_BACK} AND version = ? AND number = ?", (part.version, part.number))


@asynccontextmanager
async def _naming_the_cause() -> AsyncIterator[None]:
    """Failures as LightRAG wraps them, as what they are."""
    try:
        yield
    except Exception as error:
        raise _cause(error) from error


def _cause(error: BaseException) -> Exception:
    """The failure that LightRAG has wrapped; what is neither ours nor the disk's is a defect, and no outage."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CragsideError | sqlite3.Error | OSError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return ProcessingError(f"Indexing failed: {type(error).__name__}.")


async def _update(store: Store, task: Task, change: str, *values: str) -> None:
    part = store.catalogue.part(task)
    if part is not None:
        async with store.accepting():
            with store.database.transaction() as connection:
                connection.execute(
                    f"UPDATE part SET {change} WHERE version = ? AND number = ?",  # noqa: S608 (our own column names)
                    (*values, part.version, part.number),
                )
