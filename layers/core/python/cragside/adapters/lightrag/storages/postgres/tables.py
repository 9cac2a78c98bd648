"""Making LightRAG's own tables."""

import asyncpg

from cragside.adapters.lightrag.storages.postgres.lightrag_postgres import GRAPH_TABLES, TABLES


async def make_tables(connection: asyncpg.Connection) -> None:
    """Those for vectors come with the first vectors, whose length they name."""
    for name, table in TABLES.items():
        if not name.startswith("LIGHTRAG_VDB"):
            await connection.execute(table["ddl"].replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1))
    await connection.execute(GRAPH_TABLES)
