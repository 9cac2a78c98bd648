"""The stores of a database: which there are, how much they keep, and how they are removed."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.indexing import DocumentKey, Stored
from cragside.store.documents import stored_of
from cragside.store.postgres.schema import AGE_STORAGE, drop_graph, translating

if TYPE_CHECKING:
    from cragside.store.postgres.store import PostgresStore


# A leading dot: a store that is being built. Whoever builds it holds a lease of it.
_ABANDONED = """SELECT workspace FROM crag.store WHERE starts_with(workspace, '.') AND NOT EXISTS (
    SELECT FROM crag.lease WHERE lease.store = crag.store.id AND expires > clock_timestamp()) ORDER BY workspace"""
_IS_THERE = "SELECT 1 FROM crag.store WHERE workspace = $1"
# LightRAG's tables that have a workspace's name.
_LIGHTRAG_TABLES = """SELECT DISTINCT table_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name LIKE 'lightrag\\_%' AND column_name = 'workspace'"""
# What other databases have of it is removed afterwards.
_DROPPED = """INSERT INTO crag.dropped SELECT key, role FROM crag.outside JOIN crag.store ON store.id = outside.store
    WHERE workspace = $1"""
_LEASED = "SELECT 1 FROM crag.lease WHERE store = $1 AND expires > clock_timestamp() LIMIT 1"
# What other databases do not have yet, texts that were deleted meanwhile among it.
_WAITING = "SELECT coalesce(sum(octet_length(change)), 0)::bigint FROM crag.journal WHERE store = $1"


async def names_in(database: PostgresDatabase) -> list[str]:
    """List the workspaces of a database, in order. Raises `LedgerError`."""
    async with translating():
        return [row[0] for row in await database.all("SELECT workspace FROM crag.store ORDER BY workspace")]


async def abandoned_in(database: PostgresDatabase) -> list[str]:
    """List the stores that nobody builds any more, though they are not complete. Raises `LedgerError`."""
    async with translating():
        return [row[0] for row in await database.all(_ABANDONED)]


async def is_in(database: PostgresDatabase, workspace: str) -> bool:
    """Return True if a database has a store of a workspace. Raises `LedgerError`."""
    async with translating():
        return await database.one(_IS_THERE, workspace) is not None


async def remove(database: PostgresDatabase, workspace: str) -> None:
    """Remove a store by its workspace's name. It is no error when there is none. Raises `LedgerError`."""
    async with translating(), database.transaction():
        await remove_here(database, workspace)


async def remove_abandoned(database: PostgresDatabase, workspace: str) -> None:
    """Remove a store as `remove` does, unless somebody has a lease of it by now."""
    async with translating(), database.transaction():
        # From here on, whoever takes a lease waits, and finds the store gone.
        store = await database.value("SELECT id FROM crag.store WHERE workspace = $1 FOR UPDATE", workspace)
        if await database.value(_LEASED, store) is None:
            await remove_here(database, workspace)


async def remove_here(database: PostgresDatabase, workspace: str) -> None:
    """Remove a store as `remove` does, in the transaction that is under way."""
    await database.value(_DROPPED, workspace)
    removed = await database.one(
        "DELETE FROM crag.store WHERE workspace = $1 RETURNING key, storages::json ->> 'graph'", workspace
    )
    if removed is None:
        return
    key, graph = removed
    tables = sorted((row[0] for row in await database.all(_LIGHTRAG_TABLES)), reverse=True)
    # The reverse alphabet deletes nodes before edges; the foreign key then deletes the edges.
    for table in tables:
        await database.value(f'DELETE FROM "{table}" WHERE workspace = $1', key)  # noqa: S608 (names of tables)
    if graph == AGE_STORAGE:
        await drop_graph(database, key)


async def stored_in(database: PostgresDatabase, workspace: str, keys: Collection[DocumentKey]) -> Stored:
    """Measure a store as `Backend.stored` does. Counts and sizes are of one moment."""
    async with translating(), database.transaction(snapshot=True):
        store = await database.value("SELECT id FROM crag.store WHERE workspace = $1", workspace)
        if store is None:
            return Stored()

        async def read(sql: str, *values: Any) -> list[Any]:
            return await database.all(sql, store, *values)

        stored = await stored_of(read, keys)
        waiting = int(await database.value(_WAITING, store))
        return replace(stored, bytes=stored.bytes + waiting, waiting=waiting)


async def searched_in(store: "PostgresStore") -> int:
    """Count the searchable passages of a store."""
    return int(await store.value("SELECT count(*) FROM crag.searched WHERE store = $1"))
