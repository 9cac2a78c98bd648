"""LightRAG's own tables and key-value storage in PostgreSQL, and how its storages reach a database."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, final

import asyncpg
from typing_extensions import override

from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.lightrag import without_dotenv
from cragside.store.postgres.schema import MIGRATING, translating
from cragside.store.postgres.store import PostgresStore
from cragside.store.storages import ValueStorage

with without_dotenv():
    from lightrag.kg.pgtable_impl import _DDL as GRAPH_TABLES
    from lightrag.kg.pgtable_impl import PGTableGraphStorage
    from lightrag.kg.postgres_impl import NAMESPACE_TABLE_MAP, TABLES, PGKVStorage, PGVectorStorage, PostgreSQLDB

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


T = TypeVar("T")


class SharedDatabase(PostgreSQLDB):
    """LightRAG's database on our connections: a statement in a transaction of the ledger is part of it.

    LightRAG would open a pool of its own, set a schema up, try for minutes, and write statements with their texts into
    its log when they fail.
    """

    vector_index_type = None
    workspace = None

    def __init__(self, database: PostgresDatabase) -> None:
        self._shared = database

    @override
    async def _run_with_retry(self, operation: Callable[[asyncpg.Connection], Awaitable[T]], **_: Any) -> T:
        async with translating(), self._shared.connection() as connection:
            return await operation(connection)

    @override
    async def query(
        self, sql: str, params: list[Any] | None = None, multirows: bool = False, **_: Any
    ) -> dict[str, Any] | list[dict[str, Any]] | None:
        async with translating():
            rows = [dict(row) for row in await self._shared.all(sql, *(params or ()))]
        return rows if multirows else next(iter(rows), None)

    @override
    async def execute(self, sql: str, data: dict[str, Any] | None = None, **_: Any) -> None:
        async with translating(), self._shared.connection() as connection:
            await connection.execute(sql, *(data or {}).values())


@final
@dataclass
class PostgresValues(PGKVStorage, ValueStorage):
    """LightRAG's tables, a namespace each."""

    @override
    async def initialize(self) -> None:
        self._store = PostgresStore.of_storage(self.global_config)
        self.workspace = self._store.key
        self.db = SharedDatabase(self._store.database)
        self._store.values.add(self.namespace, self)

    @override
    async def finalize(self) -> None:
        self._store.values.remove(self.namespace, self)
        self._store.release()

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        return await super().get_by_ids(ids) if ids else []

    async def write(self, changes: dict[str, dict[str, Any] | None]) -> None:
        """Write values, and remove those that are None."""
        if gone := [key for key, value in changes.items() if value is None]:
            await self.delete(gone)
        await self.upsert({key: value for key, value in changes.items() if value is not None})


__all__ = [
    "GRAPH_TABLES",
    "NAMESPACE_TABLE_MAP",
    "TABLES",
    "PGKVStorage",
    "PGTableGraphStorage",
    "PGVectorStorage",
    "PostgreSQLDB",
]
