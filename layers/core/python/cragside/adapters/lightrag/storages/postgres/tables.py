"""LightRAG's own tables: their names, and making them."""

import asyncpg

from cragside.adapters.lightrag.ledger.postgres.schema import MIGRATING
from cragside.adapters.lightrag.storages.postgres.lightrag_postgres import GRAPH_TABLES, TABLES
from cragside.adapters.postgres.database import PostgresDatabase

_VECTORS = "LIGHTRAG_VDB"


async def make_tables(connection: asyncpg.Connection) -> None:
    """Make all but those for vectors, whose length `make_vector_tables` knows."""
    for name, table in TABLES.items():
        if not name.startswith(_VECTORS):
            await connection.execute(_unless_there(table["ddl"]))
    await connection.execute(GRAPH_TABLES)


async def make_vector_tables(database: PostgresDatabase, model: str, dimensions: int) -> None:
    """Make the tables for the vectors of a model, unless they are there. Within a transaction."""
    async with database.connection() as connection:
        missing = {
            base: name
            for base in TABLES
            if base.startswith(_VECTORS)
            and await connection.fetchval("SELECT to_regclass($1)", name := vector_table(base, model, dimensions))
            is None
        }
        if missing:
            # PostgreSQL lets two processes fail that make one table, even unless it exists.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
        for base, name in missing.items():
            statement = TABLES[base]["ddl"].replace("VECTOR(dimension)", f"VECTOR({dimensions})").replace(base, name)
            await connection.execute(_unless_there(statement))


def vector_table(base: str, model: str, dimensions: int) -> str:
    """LightRAG's name of a table for the vectors of a model."""
    letters = "".join(each if each.isascii() and each.isalnum() else "_" for each in model.lower())
    return f"{base}_{letters}_{dimensions}d"


def _unless_there(statement: str) -> str:
    return statement.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1)
