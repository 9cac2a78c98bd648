"""Connections to one Neo4j database."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import neo4j
from neo4j.exceptions import AuthError, ClientError, DriverError, Neo4jError

from cragside.adapters.neo4j.address import Neo4jAddress

CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 30.0
# A connection that was idle for longer is tested before it is used.
_IDLE_SECONDS = 30.0

T = TypeVar("T")
Run = Callable[..., Awaitable[list[Any]]]


class Neo4jFailure(Exception):
    """Neo4j failed, for `reason`. `unusable` completes the sentence 'The store …'. Neither holds what was asked."""

    def __init__(self, reason: str, unusable: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unusable = unusable


class Neo4jDatabase:
    """At most `most` connections to a database, each made when it is needed. All methods may raise `Neo4jFailure`."""

    def __init__(self, address: Neo4jAddress, *, most: int, statement_seconds: float = STATEMENT_SECONDS) -> None:
        self.address = address
        self._most = most
        self._seconds = statement_seconds
        self._driver: neo4j.AsyncDriver | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def rows(self, cypher: str, **values: Any) -> list[Any]:
        """The records of a query that only reads."""

        async def read(run: Run) -> list[Any]:
            return await run(cypher, **values)

        return await self._in_transaction(read, neo4j.READ_ACCESS)

    async def write(self, work: Callable[[Run], Awaitable[T]]) -> T:
        """Run statements in one transaction. `work` may run again after a deadlock or a broken connection."""
        return await self._in_transaction(work, neo4j.WRITE_ACCESS)

    async def execute(self, cypher: str, **values: Any) -> None:
        """Run a statement that changes the schema, or that makes transactions of its own."""
        try:
            async with self._opened().session(database=self.address.database) as session:
                await (await session.run(cypher, values)).consume()
        except (Neo4jError, DriverError, OSError) as error:
            raise _failure(error) from error

    async def close(self) -> None:
        """Close all connections."""
        driver, self._driver = self._driver, None
        if driver is not None:
            await driver.close()

    async def _in_transaction(self, work: Callable[[Run], Awaitable[T]], access: str) -> T:
        @neo4j.unit_of_work(timeout=self._seconds)
        async def unit(transaction: neo4j.AsyncManagedTransaction) -> T:
            async def run(cypher: str, **values: Any) -> list[Any]:
                return [record async for record in await transaction.run(cypher, values)]

            return await work(run)

        try:
            async with self._opened().session(database=self.address.database) as session:
                execute = session.execute_read if access == neo4j.READ_ACCESS else session.execute_write
                return await execute(unit)
        except (Neo4jError, DriverError, OSError) as error:
            raise _failure(error) from error

    def _opened(self) -> neo4j.AsyncDriver:
        loop = asyncio.get_running_loop()
        if self._driver is None or self._loop is not loop:
            # Connections belong to the event loop that made them.
            self._loop = loop
            self._driver = neo4j.AsyncGraphDatabase.driver(
                self.address.uri,
                auth=(self.address.user, self.address.password),
                max_connection_pool_size=self._most,
                connection_timeout=CONNECT_SECONDS,
                connection_acquisition_timeout=CONNECT_SECONDS + self._seconds,
                max_transaction_retry_time=CONNECT_SECONDS,
                liveness_check_timeout=_IDLE_SECONDS,
                notifications_min_severity="OFF",
            )
        return self._driver


def _failure(error: BaseException) -> Neo4jFailure:
    """What it means for whoever runs cragside."""
    if isinstance(error, AuthError):
        return Neo4jFailure("the user or the password of Neo4j is wrong", "is refused by Neo4j: check NEO4J_USERNAME")
    if isinstance(error, ClientError) and error.code == "Neo.ClientError.Database.DatabaseNotFound":
        return Neo4jFailure("Neo4j has no such database", "has no graph: NEO4J_DATABASE names none that is there")
    if isinstance(error, ClientError):
        return Neo4jFailure(f"Neo4j said {error.code}", "failed in Neo4j; see its log")
    return Neo4jFailure("Neo4j does not answer", "is out of reach: Neo4j does not answer")
