"""Taking what versions that are gone have contributed out of the graph."""

from sqlite3 import Connection

from cragside.adapters.lightrag.catalogue import StoredPart
from cragside.adapters.lightrag.drafts import Draft
from cragside.adapters.lightrag.store import Store


async def sweep(store: Store) -> None:
    """Take versions that are gone out of the graph, part by part, each in one transaction."""
    if store.database.one("SELECT 1 FROM document WHERE state = 'gone'") is None:
        return
    async with store.writing():
        for part in store.catalogue.gone():
            await _remove(store, part)
        async with store.accepting():
            with store.database.transaction() as connection:
                connection.execute(
                    "DELETE FROM document WHERE state = 'gone' AND version NOT IN (SELECT version FROM part)"
                )


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
