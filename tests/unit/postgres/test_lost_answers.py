"""Statements that only read run again when a connection ends before the answer has come."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import ConnectionLost
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.errors import ServiceUnavailable
from cragside.store.queues.postgres import PostgresQueue


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
    database = Losing()
    with pytest.raises(ServiceUnavailable):
        await PostgresQueue(database).receive(limit=1, wait=0)
    assert [sql for sql in database.asked if "take_tasks" in sql] == database.asked[-1:]
