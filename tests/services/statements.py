"""Counting the statements that go to PostgreSQL: each is a round trip."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
from typing_extensions import override

from cragside.adapters.postgres.database import PostgresDatabase


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
