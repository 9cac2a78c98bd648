"""Statements that only read run again when a connection ends before the answer has come."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import ConnectionLost
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.errors import ServiceUnavailable
from cragside.store.queues import turns
from cragside.store.queues.postgres import postgres_queue


class Losing(PostgresDatabase):
    """Loses the first answer to each statement."""

    def __init__(self) -> None:
        super().__init__(PostgresAddress.parse("postgresql://user@127.0.0.1:1/knowledge"), most=1)
        self.asked: list[str] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        yield self

    async def fetch(self, sql: str, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(sql)
        if self.asked.count(sql) == 1:
            raise ConnectionLost("the connection was lost")
        return []


class LosingTheCommit(PostgresDatabase):
    """Has a task that is due, and loses the answer to the end of a transaction."""

    def __init__(self) -> None:
        super().__init__(PostgresAddress.parse("postgresql://user@127.0.0.1:1/knowledge"), most=1)
        self.asked: list[str] = []

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncIterator[None]:
        yield
        raise ConnectionLost("the connection was lost")

    async def all(self, sql: str, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(sql)
        if sql == turns.EMBED:
            return [(1, 0, "library", "doc-1", "sha", 0, "embed", 0)]
        rows = {"SELECT EXISTS": (True, False), "SELECT pg_try": (True, ""), "SELECT count": (0, 0, 0)}
        return [row for begin, row in rows.items() if sql.startswith(begin)]

    async def many(self, sql: str, rows: Any) -> None:
        self.asked.append(sql)


async def test_what_only_reads_is_asked_again() -> None:
    database = Losing()
    assert await database.all("SELECT 1") == []
    assert database.asked == ["SELECT 1"] * 2


@pytest.mark.parametrize("sql", ["DELETE FROM crag.task RETURNING 1", "WITH new AS (INSERT INTO a SELECT 1) SELECT 1"])
async def test_what_writes_is_not(sql: str) -> None:
    database = Losing()
    with pytest.raises(ConnectionLost):
        await database.all(sql)
    assert database.asked == [sql]


async def test_no_further_tasks_are_taken_when_the_answer_with_the_first_ones_was_lost() -> None:
    database = LosingTheCommit()
    with pytest.raises(ServiceUnavailable):
        await postgres_queue(database).receive(limit=1, wait=0)
    assert [sql for sql in database.asked if sql.startswith("UPDATE crag.task SET lease = clock")] == database.asked[
        -1:
    ]


async def test_a_queue_that_took_nothing_asks_nothing_when_it_is_closed() -> None:
    """A function closes its connections before a snapshot."""
    database = Losing()
    await postgres_queue(database).close()
    assert database.asked == []
