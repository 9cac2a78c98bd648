"""Connections to one Neo4j database."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

import neo4j
from neo4j.auth_management import AsyncAuthManager
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConfigurationError,
    DatabaseUnavailable,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    UnsupportedServerProduct,
)

from cragside.databases.gate import WAIT_SECONDS, Gate, ServerFailure, Shares, close_quietly
from cragside.databases.renewable import Fixed, Renewable, Unreadable
from cragside.databases.server_addresses import Neo4jAddress
from cragside.domain.hops import request_id
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.telemetry import DatabaseFigures

_WRONG = "Neo.ClientError.Security.Unauthorized"


class Login(AsyncAuthManager):
    """A user with a password that may be exchanged. The driver asks for it before each use of a connection."""

    def __init__(self, user: str, passwords: Renewable[str]) -> None:
        self._user = user
        self._passwords = passwords

    async def get_auth(self) -> neo4j.Auth:
        """Return the user and the current password. Raises `Unreadable`."""
        return neo4j.basic_auth(self._user, await self._passwords.current())

    async def handle_security_exception(self, auth: object, error: Neo4jError) -> bool:
        """Return True if there is another password to try again with."""
        if error.code != _WRONG or not isinstance(auth, neo4j.Auth) or auth.credentials is None:
            return False
        return await self._passwords.after_refusal(auth.credentials) is not None


CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 30.0
# A connection that was idle for longer is tested before it is used.
_IDLE_SECONDS = 30.0
# Pauses before further attempts, after a deadlock or a broken connection. What failed slowly is not tried again.
_PAUSES = (0.0, 0.1, 0.3)
_SLOW_SECONDS = 1.0
_ALL_ROWS = -1
_REFUSED = ("Neo.ClientError.Security.Unauthorized", "Neo.ClientError.Security.AuthenticationRateLimit")

T = TypeVar("T")
Run = Callable[..., Awaitable[list[Any]]]


# Every failure is raised as `Neo4jFailure`. The driver logs it too, in words of its own.
logging.getLogger("neo4j").setLevel(logging.CRITICAL)


class Neo4jFailure(ServerFailure):
    """Neo4j failed."""


class Neo4jDatabase:
    """At most `most` connections to a database, each made when it is needed. All methods may raise `Neo4jFailure`.

    In a cluster, all statements go to the leader: another server may lack what was just written.
    """

    def __init__(
        self,
        address: Neo4jAddress,
        *,
        most: int,
        passwords: Renewable[str] | None = None,
        statement_seconds: float = STATEMENT_SECONDS,
        figures: DatabaseFigures | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Take `passwords` rather than the one in the address."""
        self.address = address
        self._login = Login(address.user, passwords or Fixed(address.password))
        self._most = most
        self._seconds = statement_seconds
        self._driver: neo4j.AsyncDriver | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock = clock
        self._shares = Shares(most)
        self._gate = Gate("Neo4j", Neo4jFailure, self._sign_of_life, most=most, clock=clock, figures=figures)

    @asynccontextmanager
    async def share_of(self, user: str) -> AsyncIterator[None]:
        """Hold one of the connections for `user` in this block. All blocks of one user hold at most half of them."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self._shares.turn(user, wait_seconds=WAIT_SECONDS))
            except TimeoutError:
                busy = f"all {self._shares.each} connections to Neo4j of one workspace are in use"
                raise Neo4jFailure(busy, f"is busy: {busy}. Try again, or raise RAG_NEO4J_CONNECTIONS") from None
            yield

    async def rows(self, cypher: str, **values: Any) -> list[Any]:
        """Return the records of a query that only reads."""

        async def read(session: neo4j.AsyncSession) -> list[Any]:
            return [record async for record in await session.run(self._bounded(cypher), values)]

        return await self._run(read)

    async def write(self, work: Callable[[Run], Awaitable[T]]) -> T:
        """Run statements in one transaction. `work` may run again after a deadlock or a broken connection."""

        async def write(session: neo4j.AsyncSession) -> T:
            async with await session.begin_transaction(metadata=_metadata(), timeout=self._seconds) as transaction:

                async def run(cypher: str, **values: Any) -> list[Any]:
                    return [record async for record in await transaction.run(cypher, values)]

                result = await work(run)
                await transaction.commit()
                return result

        return await self._run(write)

    async def execute(self, cypher: str, **values: Any) -> None:
        """Run a statement that changes the schema, or that makes transactions of its own."""

        async def execute(session: neo4j.AsyncSession) -> None:
            await (await session.run(self._bounded(cypher), values)).consume()

        await self._run(execute)

    async def close(self) -> None:
        """Close all connections."""
        await self._gate.stop()
        driver, self._driver = self._driver, None
        if driver is not None:
            await close_quietly("Neo4j", driver.close())

    def _bounded(self, cypher: str) -> neo4j.Query:
        return neo4j.Query(cypher, metadata=_metadata(), timeout=self._seconds)

    async def _run(self, work: Callable[[neo4j.AsyncSession], Awaitable[T]]) -> T:
        began = self._clock.monotonic()
        for pause in (*_PAUSES, None):
            try:
                return await self._once(work)
            except (Neo4jError, DriverError, OSError) as error:
                slow = self._clock.monotonic() - began > _SLOW_SECONDS
                if pause is None or slow or isinstance(error, OSError) or not error.is_retryable():
                    raise self._noted(error) from error
            await self._clock.sleep(pause)
        raise AssertionError  # the last attempt returns or raises

    async def _once(self, work: Callable[[neo4j.AsyncSession], Awaitable[T]]) -> T:
        driver = self._opened()
        async with (
            self._gate.passed(),
            # The server ends a statement that takes too long. This ends the wait if it does not.
            asyncio.timeout(CONNECT_SECONDS + self._seconds),
            driver.session(database=self.address.database, fetch_size=_ALL_ROWS) as session,
        ):
            return await work(session)

    def _noted(self, error: Exception) -> Neo4jFailure:
        failure = _failure(error)
        if _is_outage(error):
            self._gate.close_for_a_while(failure)
        elif isinstance(error, Neo4jError):
            self._gate.answered()
        return failure

    async def _sign_of_life(self) -> None:
        async with self._made(most=1) as driver:
            with suppress(Neo4jError):  # a refusal is an answer
                await driver.verify_connectivity()

    def _opened(self) -> neo4j.AsyncDriver:
        loop = asyncio.get_running_loop()
        if self._driver is None or self._loop is not loop:
            # Connections belong to the event loop that made them.
            self._loop, self._driver = loop, self._made(self._most)
        return self._driver

    def _made(self, most: int) -> neo4j.AsyncDriver:
        return neo4j.AsyncGraphDatabase.driver(
            self.address.uri,
            auth=self._login,
            max_connection_pool_size=most,
            connection_timeout=CONNECT_SECONDS,
            connection_acquisition_timeout=CONNECT_SECONDS,
            liveness_check_timeout=_IDLE_SECONDS,
            notifications_min_severity="OFF",
        )


def _metadata() -> dict[str, str]:
    """Name the program and the request, for Neo4j's query log and SHOW TRANSACTIONS."""
    return {"app": "cragside", "request": request_id.get()}


def _is_outage(error: Exception) -> bool:
    """Return True if other requests would fail too. A statement that takes too long tells nothing about the server."""
    if isinstance(error, TimeoutError):
        return False
    gone = isinstance(error, ServiceUnavailable | SessionExpired | DatabaseUnavailable | OSError)
    return gone or _is_refused(error)


def _is_refused(error: BaseException) -> bool:
    return isinstance(error, Neo4jError) and error.code in _REFUSED


def _failure(error: BaseException) -> Neo4jFailure:
    """Translate an error of the driver into what an operator has to know."""
    if isinstance(error, UnsupportedServerProduct):
        wrong = "what answers at NEO4J_URI is no Neo4j that can be used"
        return Neo4jFailure(wrong, f"has no graph: {wrong}")
    if isinstance(error, ConfigurationError):
        return Neo4jFailure(
            "Neo4j's driver refuses the address", "has no graph: Neo4j's driver refuses its address. Correct NEO4J_URI"
        )
    if isinstance(error, Unreadable):
        unread = "what NEO4J_PASSWORD_SECRET names cannot be read"
        return Neo4jFailure(unread, f"is out of reach: {unread}. The log has the reason")
    if isinstance(error, AuthError) or _is_refused(error):
        return Neo4jFailure(
            "the user or the password of Neo4j is wrong", "is refused by Neo4j. Check NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    if isinstance(error, ClientError) and error.code == "Neo.ClientError.Database.DatabaseNotFound":
        return Neo4jFailure(
            "Neo4j has no such database",
            "has no graph: its database is not there. Create it, or correct NEO4J_DATABASE",
        )
    if isinstance(error, Neo4jError):
        return Neo4jFailure(f"Neo4j said {error.code}", "failed in Neo4j. See its log")
    return Neo4jFailure("Neo4j does not answer", "is out of reach: Neo4j does not answer")
