"""Taking what versions that are gone have contributed out of the graph."""

import asyncio
import logging
from sqlite3 import Connection

from cragside.adapters.lightrag.catalogue import StoredPart
from cragside.adapters.lightrag.drafts import Draft
from cragside.adapters.lightrag.schema import UNTIDY
from cragside.adapters.lightrag.store import Store

# Somebody waits for the answer, and a model may be asked to describe what remains.
_AT_ONCE_SECONDS = 2.0

logger = logging.getLogger("cragside")


async def sweep(store: Store) -> None:
    """Take versions that are gone out of the graph, part by part, each in one transaction."""
    if _anything_gone(store):
        async with store.writing():
            await _swept(store)


async def sweep_if_free(store: Store) -> None:
    """Sweep at once, unless somebody is writing to the graph, it takes long, or it fails: a worker does it then."""
    if not _anything_gone(store):
        return
    async with store.writing_if_free() as free:
        if free:
            try:
                async with asyncio.timeout(_AT_ONCE_SECONDS):
                    await _swept(store)
            except Exception as error:
                logger.warning("Workspace %s is swept later: %s", store.workspace, type(error).__name__)


def _anything_gone(store: Store) -> bool:
    return store.database.one("SELECT 1 FROM document WHERE state = 'gone'") is not None


async def _swept(store: Store) -> None:
    for part in store.catalogue.gone():
        await _remove(store, part)
    async with store.accepting():
        with store.database.transaction() as connection:
            connection.execute(
                "DELETE FROM document WHERE state = 'gone' AND version NOT IN (SELECT version FROM part)"
            )
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, hex(randomblob(8)))", (UNTIDY,))
    store.tidying.ask()


async def forget_graph(store: Store, part: StoredPart) -> Draft | None:
    """A draft in which the part contributes nothing to the graph, None when it never did. Only while `writing`."""
    draft = Draft(store.engine, store.database, without=store.catalogue.chunk_ids(part))
    return draft if await draft.forget(part.key) else None


async def _remove(store: Store, part: StoredPart) -> None:
    draft = await forget_graph(store, part) or Draft(store.engine, store.database)
    here = (part.version, part.number)

    def still_gone(connection: Connection) -> bool:
        store.check_model()
        state = "SELECT 1 FROM document WHERE version = ? AND state = 'gone'"
        if connection.execute(state, (part.version,)).fetchone() is None:
            return False
        ids = store.catalogue.chunk_ids(part)
        store.engine.chunks_vdb.erase(connection, ids)
        connection.executemany("DELETE FROM kv WHERE namespace = 'text_chunks' AND id = ?", [(key,) for key in ids])
        connection.execute("DELETE FROM chunk WHERE version = ? AND part = ?", here)
        connection.execute("DELETE FROM part WHERE version = ? AND number = ?", here)
        return True

    await draft.commit(still_gone)
