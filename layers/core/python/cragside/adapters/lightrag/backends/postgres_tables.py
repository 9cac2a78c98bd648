"""Making the tables of a PostgreSQL database: the ledger's and LightRAG's."""

import asyncpg

from cragside.adapters.lightrag.ledger.postgres.schema import SCHEMA_VERSION, TABLES, version_of
from cragside.adapters.lightrag.ledger.postgres.search_schema import TABLES as SEARCH_TABLES
from cragside.adapters.lightrag.storages.postgres.lightrag_postgres import GRAPH_TABLES
from cragside.adapters.lightrag.storages.postgres.lightrag_postgres import TABLES as LIGHTRAG_TABLES
from cragside.adapters.postgres.database import PostgresDatabase

# Any number that no other program is likely to lock.
_MIGRATING = 0x6372_6167


async def migrate(database: PostgresDatabase) -> None:
    """Make the tables, whole or not at all. Several processes may do so at the same time."""
    async with database.transaction(), database.connection() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATING)
        if await version_of(database) == 0:
            await connection.execute(TABLES)
            await connection.execute(SEARCH_TABLES)
            await _make_tables_of_lightrag(connection)
            await connection.execute("INSERT INTO cragside.schema_version VALUES ($1)", SCHEMA_VERSION)


async def _make_tables_of_lightrag(connection: asyncpg.Connection) -> None:
    """Those for vectors come with the first vectors, whose length they name."""
    for name, table in LIGHTRAG_TABLES.items():
        if not name.startswith("LIGHTRAG_VDB"):
            await connection.execute(table["ddl"].replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1))
    await connection.execute(GRAPH_TABLES)
