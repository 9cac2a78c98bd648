"""Removing the content of a workspace, LightRAG's share of it included."""

from cragside.adapters.lightrag.ledger.postgres.age import AGE_STORAGE, drop_graph
from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.postgres.database import PostgresDatabase

# LightRAG's tables that have a workspace's name.
_LIGHTRAG_TABLES = """SELECT DISTINCT table_name FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name LIKE 'lightrag\\_%' AND column_name = 'workspace'"""

# What other databases have of it is removed afterwards.
_DROPPED = """INSERT INTO crag.dropped SELECT key, role FROM crag.outside JOIN crag.store ON store.id = outside.store
    WHERE workspace = $1"""

_LEASED = "SELECT 1 FROM crag.lease WHERE store = $1 AND expires > clock_timestamp() LIMIT 1"


async def remove(database: PostgresDatabase, workspace: str) -> None:
    """Remove a store by its workspace's name. It is no error when there is none. Raises `LedgerError`."""
    async with translating(), database.transaction():
        await remove_here(database, workspace)


async def remove_abandoned(database: PostgresDatabase, workspace: str) -> None:
    """As `remove`, unless somebody has a lease of the store by now."""
    async with translating(), database.transaction():
        # From here on, whoever takes a lease waits, and finds the store gone.
        store = await database.value("SELECT id FROM crag.store WHERE workspace = $1 FOR UPDATE", workspace)
        if await database.value(_LEASED, store) is None:
            await remove_here(database, workspace)


async def remove_here(database: PostgresDatabase, workspace: str) -> None:
    """As `remove`, in the transaction that is under way."""
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
