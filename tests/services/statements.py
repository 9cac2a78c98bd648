"""Counting the statements that go to PostgreSQL and Neo4j: each is a round trip."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import asyncpg
from typing_extensions import override

from cragside.databases.neo4j import Neo4jDatabase, Run
from cragside.databases.postgres.database import PostgresDatabase
from cragside.databases.server_addresses import Neo4jAddress

T = TypeVar("T")


class CountingDatabase(PostgresDatabase):
    """A database that notes its statements, those that begin and end transactions included."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.statements: list[str] = []

    @override
    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[asyncpg.Connection]:
        async with super()._lent() as connection:
            connection.add_query_logger(self._note)
            try:
                yield connection
            finally:
                connection.remove_query_logger(self._note)

    def _note(self, query: Any) -> None:
        self.statements.append(query.query)

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The statements of a block."""
        before = len(self.statements)
        noted: list[str] = []
        yield noted
        noted += self.statements[before:]


class CountingGraph(Neo4jDatabase):
    """Neo4j. What goes there is noted among the statements to PostgreSQL."""

    def __init__(self, address: Neo4jAddress, database: CountingDatabase) -> None:
        super().__init__(address, most=3)
        self._statements = database.statements

    @override
    async def rows(self, cypher: str, **values: Any) -> list[Any]:
        self._statements.append(f"Neo4j: {cypher}")
        return await super().rows(cypher, **values)

    @override
    async def write(self, work: Callable[[Run], Awaitable[T]]) -> T:
        self._statements.append("Neo4j: a transaction that writes")
        return await super().write(work)
