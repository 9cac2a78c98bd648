"""LightRAG's own tables: their names, and making them."""

import asyncpg

from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.ledger.postgres.schema import MIGRATING
from cragside.store.storages.postgres.lightrag_postgres import GRAPH_TABLES, NAMESPACE_TABLE_MAP, TABLES

# The namespaces of rows with vectors.
VECTORS = ("chunks", "entities", "relationships")
# In whose schema LightRAG's other programs look. A role called cragside would make them beside the ledger's.
_IN_PUBLIC = "SELECT set_config('search_path', 'public, ' || current_setting('search_path'), true)"

# By which a passage's cached answers are found, and whether another passage uses them.
_INDEXES = """
CREATE INDEX IF NOT EXISTS lightrag_llm_cache_by_chunk ON lightrag_llm_cache (workspace, chunk_id);
CREATE INDEX IF NOT EXISTS lightrag_doc_chunks_by_answer ON lightrag_doc_chunks USING gin (llm_cache_list);
"""
# A search reads every vector. In the rows, up to 8 KB, they take half the time that they would take beside them.
_WITH_VECTORS = "ALTER TABLE public.{} SET (toast_tuple_target = 8160)"


async def make_tables(connection: asyncpg.Connection) -> None:
    """Make all but those for vectors, whose length `make_vector_tables` knows."""
    await connection.execute(_IN_PUBLIC)
    for name, table in TABLES.items():
        if name not in map(NAMESPACE_TABLE_MAP.get, VECTORS):
            await connection.execute(_unless_there(table["ddl"]))
    await connection.execute(GRAPH_TABLES)
    await connection.execute(_INDEXES)


async def make_vector_tables(database: PostgresDatabase, model: str, dimensions: int) -> None:
    """Make the tables for the vectors of a model, unless they are there. Within a transaction."""
    missing = await missing_vector_tables(database, model, dimensions)
    async with database.connection() as connection:
        if missing:
            # PostgreSQL lets two processes fail that make one table, even unless it exists.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
            await connection.execute(_IN_PUBLIC)
        for base, name in missing.items():
            statement = TABLES[base]["ddl"].replace("VECTOR(dimension)", f"VECTOR({dimensions})").replace(base, name)
            await connection.execute(_unless_there(statement))
            await connection.execute(_WITH_VECTORS.format(name))


async def missing_vector_tables(database: PostgresDatabase, model: str, dimensions: int) -> dict[str, str]:
    """LightRAG's tables for the vectors of a model that are not there, by their names without the model."""
    names = {NAMESPACE_TABLE_MAP[each]: vector_table(NAMESPACE_TABLE_MAP[each], model, dimensions) for each in VECTORS}
    asked = "SELECT name FROM unnest($1::text[]) AS each (name) WHERE to_regclass('public.' || name) IS NULL"
    missing = {row[0] for row in await database.all(asked, list(names.values()))}
    return {base: name for base, name in names.items() if name in missing}


def vector_table(base: str, model: str, dimensions: int) -> str:
    """Return LightRAG's name of a table for the vectors of a model."""
    letters = "".join(each if each.isascii() and each.isalnum() else "_" for each in model.lower())
    return f"{base}_{letters}_{dimensions}d"


def _unless_there(statement: str) -> str:
    return statement.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1)
