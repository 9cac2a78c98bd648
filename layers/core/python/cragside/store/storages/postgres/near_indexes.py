"""Indexes for the vectors of large workspaces.

Each large workspace has indexes of its own, so that neither it nor a small one beside it loses what an index of all
would pass over. Where one is missing, searches are exact and take longer.
"""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from weakref import WeakKeyDictionary

import asyncpg

from cragside.databases.gate import close_quietly
from cragside.databases.postgres.connections import CONNECT_SECONDS
from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.ledger.postgres.failing import translating
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.postgres.lightrag_postgres import NAMESPACE_TABLE_MAP
from cragside.store.storages.postgres.tables import vector_table

# Up to so many vectors are compared with a question one by one, which is exact.
LARGE = 2_000
# Of vectors that are all about equally near to a question, pgvector's defaults miss half.
_CARE = "WITH (m = 32, ef_construction = 128)"
# pgvector cannot index longer ones.
_LONGEST = 4_000
_STORES = """SELECT id, key, embedding_model, dimensions FROM crag.store
    WHERE embedding_model IS NOT NULL AND dimensions <= $1 AND ($2::bigint IS NULL OR id = $2) ORDER BY id"""
_MADE = """SELECT indisvalid OR EXISTS (SELECT FROM pg_stat_progress_create_index WHERE index_relid = indexrelid)
    FROM pg_index WHERE indexrelid = to_regclass($1)"""
# Numbers of stores are never used again.
_LEFT = """SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname ~ '^(near_passages|cragside_near_[a-z]+)_[0-9]+$'
    AND NOT EXISTS (SELECT FROM crag.store WHERE id = substring(relname from '[0-9]+$')::bigint)"""
# Whoever makes or drops an index waits for transactions of others. One of them may never end.
_LOCK_SECONDS = 10
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class _Index(NamedTuple):
    name: str
    table: str
    column: str
    condition: str
    dimensions: int


def index_of_passages(store: str) -> str:
    """The name of the index, where `store` is SQL for the store's number."""
    return f"'crag.near_passages_' || {store}"


def index_of_rows(namespace: str, store: str) -> str:
    """The name of the index of a vector table of LightRAG's, where `store` is SQL for the store's number."""
    return f"'cragside_near_{namespace}_' || {store}"


async def make_near_indexes_of(store: PostgresStore) -> None:
    """Make the missing indexes of a workspace if it is large. Raises `LedgerError`."""
    # So few passages hold no large number of relations either.
    few = LARGE // 10
    if await store.value("SELECT passages >= $2 FROM crag.extent WHERE store = $1", few):
        await make_near_indexes(store.database, store.number)


async def make_near_indexes(database: PostgresDatabase, store: int | None = None) -> int:
    """Make the missing indexes of all large workspaces, or of one, and drop those of removed ones. How many were made.

    Meanwhile others read and write. Raises `LedgerError`.
    """
    made = 0
    async with translating(), _alone(database) as connection:
        for (left,) in await _rows(connection, _LEFT):
            with suppress(asyncpg.PostgresError):  # the next one tries again
                await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {left}")
        for row in await _rows(connection, _STORES, _LONGEST, store):
            for index in _indexes(*row):
                if await _is_large(connection, index) and not await _value(connection, _MADE, index.name):
                    await _make(connection, index)
                    made += 1
    return made


def _indexes(store: int, key: str, model: str, dimensions: int) -> list[_Index]:
    passages = _Index(f"crag.near_passages_{store}", "crag.searched", "vector", f"store = {store}", dimensions)
    rows = [
        _Index(
            f"cragside_near_{namespace}_{store}",
            vector_table(NAMESPACE_TABLE_MAP[namespace], model, dimensions),
            "content_vector",
            f"workspace = '{key}'",
            dimensions,
        )
        for namespace in ("entities", "relationships")
    ]
    return [passages, *rows]


async def _is_large(connection: asyncpg.Connection, index: _Index) -> bool:
    if await _value(connection, "SELECT to_regclass($1)", index.table) is None:
        return False
    few = f"SELECT 1 FROM {index.table} WHERE {index.condition} LIMIT {LARGE}"
    return bool(await _value(connection, f"SELECT count(*) = {LARGE} FROM ({few}) AS few"))


async def _make(connection: asyncpg.Connection, index: _Index) -> None:
    # One that a process began and did not end is of no use.
    await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}")
    # Another process may begin it at the same moment.
    with suppress(asyncpg.DuplicateTableError, asyncpg.UniqueViolationError):
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY {index.name.rpartition('.')[2]} ON {index.table}"
            f" USING hnsw (({index.column}::halfvec({index.dimensions})) halfvec_cosine_ops)"
            f" {_CARE} WHERE {index.condition}"
        )


@asynccontextmanager
async def _alone(database: PostgresDatabase) -> AsyncIterator[asyncpg.Connection]:
    """A connection beside the pool's, which may take minutes. A process has one of them at a time."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        given = (await database.addresses.current()).arguments()
        connection = await asyncpg.connect(**given, statement_cache_size=0, timeout=CONNECT_SECONDS)
        try:
            if not database.is_pooled:  # a pooler would give the session to others
                await connection.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
            yield connection
        finally:
            await close_quietly("PostgreSQL", connection.close())


async def _rows(connection: asyncpg.Connection, sql: str, *values: object) -> list[asyncpg.Record]:
    # A pooler may run what is not in a transaction in another session than the one that has prepared it.
    async with connection.transaction():
        return list(await connection.fetch(sql, *values))


async def _value(connection: asyncpg.Connection, sql: str, *values: object) -> object:
    ((value,),) = await _rows(connection, sql, *values) or ((None,),)
    return value
