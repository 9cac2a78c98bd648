"""A question waits for Neo4j for a while; what it asked goes on, so that the next one finds the plan."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cragside.databases.neo4j import Neo4jFailure
from cragside.store.errors import LedgerError
from cragside.store.outside.neo4j import Neo4jGraphs


class Database:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.planned = asyncio.Event()
        self.failure: Exception | None = None
        self.answered = self.cancelled = 0

    async def rows(self, cypher: str, **values: Any) -> list[Any]:
        try:
            await self.planned.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure:
            raise self.failure
        self.answered += 1
        return [[1]]

    @asynccontextmanager
    async def share_of(self, workspace: str) -> AsyncIterator[None]:
        yield

    async def close(self) -> None:
        pass


def graph(database: Any) -> Neo4jGraphs:
    return Neo4jGraphs(database)


async def test_a_query_that_nobody_waits_for_goes_on() -> None:
    database = Database()
    asked = graph(database)
    with pytest.raises(TimeoutError):
        await asked.rows_within(0.01, "zoo", "RETURN 1")
    gone = asyncio.create_task(asked.rows_within(60, "zoo", "RETURN 1"))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    database.planned.set()
    assert await asked.rows_within(60, "zoo", "RETURN 1") == [[1]]
    assert (database.answered, database.cancelled) == (3, 0)


async def test_few_queries_that_nobody_waits_for_keep_connections() -> None:
    database = Database()
    asked = graph(database)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            await asked.rows_within(0.01, "zoo", "RETURN 1")
    await asyncio.sleep(0)
    assert database.cancelled == 3
    await asked.close()


async def test_closing_ends_what_nobody_waits_for() -> None:
    database = Database()
    asked = graph(database)
    with pytest.raises(TimeoutError):
        await asked.rows_within(0.01, "zoo", "RETURN 1")
    await asked.close()
    assert database.cancelled == 1


class OneAtATime(Database):
    """Has one connection, and takes a while to answer each question."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self._free = asyncio.Semaphore(1)

    async def rows(self, cypher: str, **values: Any) -> list[Any]:
        await asyncio.sleep(self.seconds)
        return [[1]]

    @asynccontextmanager
    async def share_of(self, workspace: str) -> AsyncIterator[None]:
        async with self._free:
            yield


@pytest.mark.waits("turns")
async def test_whoever_waits_for_his_turn_while_others_are_answered_is_answered_too() -> None:
    asked = graph(OneAtATime(0.3))  # the last one has to wait for 1.2 seconds
    answers = await asyncio.gather(*(asked.rows_within(1, "zoo", "RETURN 1") for _ in range(5)))
    assert answers == [[[1]]] * 5


async def test_nobody_waits_for_ever_for_his_turn() -> None:
    asked = graph(OneAtATime(0.1))
    told = await asyncio.gather(
        *(asked.rows_within(0.2, "zoo", "RETURN 1") for _ in range(100)), return_exceptions=True
    )
    assert told[0] == [[1]]
    assert isinstance(told[-1], TimeoutError)
    await asked.close()


async def test_nobody_waits_for_his_turn_while_nobody_is_answered() -> None:
    asked = graph(OneAtATime(60))
    async with asyncio.timeout(10):
        told = await asyncio.gather(
            *(asked.rows_within(0.1, "zoo", "RETURN 1") for _ in range(4)), return_exceptions=True
        )
        assert [type(each) for each in told] == [TimeoutError] * 4
        await asked.close()


async def test_a_failure_reaches_whoever_waits() -> None:
    database = Database()
    database.failure = Neo4jFailure("Neo4j does not answer", "is out of reach")
    database.planned.set()
    with pytest.raises(LedgerError, match="is out of reach"):
        await graph(database).rows_within(60, "zoo", "RETURN 1")
