"""The one place where LightRAG's PostgreSQL storages reach a database."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg
from typing_extensions import override

from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.ledger.postgres.failing import translating
from cragside.store.storages.postgres.lightrag_postgres import PostgreSQLDB

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
