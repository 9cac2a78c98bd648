"""The connections to one PostgreSQL database: how many, for how long, and what happens when they break."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import asyncpg

from cragside.adapters.closing import close_quietly
from cragside.adapters.postgres.address import PostgresAddress
from cragside.adapters.postgres.statements import kind_of
from cragside.adapters.renewable import Renewable
from cragside.ports.telemetry import DatabaseFigures

CONNECT_SECONDS = 3.0
# How long a caller waits while all connections are in use.
WAIT_SECONDS = 10.0
# How long the server may take to confirm that a statement is cancelled. Then the connection is dropped.
CLEANUP_SECONDS = 1.0
# A connection that was idle for longer is replaced: a frozen function's connection is dead when it thaws.
IDLE_SECONDS = 30.0

_ENDED = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.InternalClientError,  # its end was read while a statement was being sent
    ConnectionError,
)
# The last is pgbouncer's.
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.ProtocolViolationError)
_FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class AllBusy(OSError):
    """All connections stayed in use for as long as a caller waits."""


class ConnectionLost(OSError):
    """The connection ended in the middle of its use. Another one can be had."""


class Connections:
    """At most `most` connections, each made when it is needed. Further callers wait `wait_seconds` at most.

    One user has half of them at most, so that those of a workspace that is slow or locked keep no other one waiting.
    A pooler such as pgbouncer may give each transaction another session. Prepared statements are then used only if the
    address has a `statement_cache_size`. When the address is exchanged, new connections use the new one; those that
    are open stay, unless it leads to another database.
    """

    def __init__(
        self,
        addresses: Renewable[PostgresAddress],
        *,
        most: int,
        statement_seconds: float,
        wait_seconds: float = WAIT_SECONDS,
        figures: DatabaseFigures | None = None,
    ) -> None:
        self._addresses = addresses
        self.address: PostgresAddress | None = None
        """The last one that was used, None before the first connection."""
        self._statement_seconds = statement_seconds
        self._most = most
        self._wait_seconds = wait_seconds
        self._pool: asyncpg.Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._free = asyncio.Semaphore(most)
        # Two at least: whoever copies a store reads and writes at the same time.
        self._share = max((most + 1) // 2, 2)
        self._free_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._direct: bool | None = None
        self._figures = figures
        self._counts = Counter[str]()
        self._count()

    @property
    def session_changes(self) -> bool:
        """Whether a pooler may run two statements in two sessions, unless they are in one transaction."""
        return self._direct is False and not (self.address and self.address.statement_cache_size)

    @property
    def bounds(self) -> str:
        """What a transaction has to set so that the server bounds it, "" if its session is bounded."""
        return _bounds(self._statement_seconds, "LOCAL ") if self._direct is False else ""

    @asynccontextmanager
    async def one(self, user: str = "") -> AsyncIterator[asyncpg.Connection]:
        """A connection for this block, and for one of several users if it is named.

        Raises `AllBusy`, `ConnectionLost`, `Unreadable`, and what connecting raises.
        """
        pool = await self._opened()
        async with self._place(user):
            connection = await pool.acquire(timeout=CONNECT_SECONDS)
            try:
                yield connection
            except BaseException as error:
                if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                    # The server was read-only when the sessions began, or they lead to a replica.
                    await pool.expire_connections()
                elif _is_lost(connection, error):
                    # The idle connections were probably lost with it. Those in use stay.
                    await pool.expire_connections()
                    if isinstance(error, _FAILURES) and not isinstance(error, TimeoutError):
                        raise ConnectionLost("the connection to PostgreSQL was lost") from error
                raise
            finally:
                await _given_back(pool, connection)

    @asynccontextmanager
    async def _place(self, user: str) -> AsyncIterator[None]:
        """A place among those of the user, and one among all."""
        free = [self._free]
        if user:
            free.insert(0, self._free_of.setdefault(user, asyncio.Semaphore(self._share)))
        async with AsyncExitStack() as taken:
            self._count(waiting=1)
            try:
                async with asyncio.timeout(self._wait_seconds):
                    for each in free:
                        await taken.enter_async_context(each)
            except TimeoutError:
                raise AllBusy(f"all {self._most} connections, or {self._share} of one workspace, are in use") from None
            finally:
                self._count(waiting=-1)
            self._count(in_use=1)
            try:
                yield
            finally:
                self._count(in_use=-1)

    def _count(self, **changes: int) -> None:
        self._counts.update(changes)
        if self._figures is not None:
            counts = {name: max(self._counts[name], 0) for name in ("in_use", "waiting", "opened")}
            self._figures.connections("postgres", most=self._most, **counts)

    async def close(self) -> None:
        """Close all connections."""
        if (pool := self._pool) is not None:
            self._pool = None
            await close_quietly("PostgreSQL", pool.close())  # which ends what it cannot close

    async def _opened(self) -> asyncpg.Pool:
        if self._loop is not asyncio.get_running_loop():
            # Connections belong to the event loop that made them. That one has ended.
            self._loop, self._pool = asyncio.get_running_loop(), None
            self._counts["opened"] = 0
            self._opening, self._free = asyncio.Lock(), asyncio.Semaphore(self._most)
            self._free_of.clear()
        address = await self._addresses.current()
        async with self._opening:
            before, self.address = self.address, address
            if self._pool is not None and before is not address and str(before) != str(address):
                await self._pool.expire_connections()
                self._direct = None
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    min_size=0,
                    max_size=self._most,
                    max_inactive_connection_lifetime=IDLE_SECONDS,
                    connect=self._connect,
                    reset=_as_it_is,
                )
            return self._pool

    async def _connect(self, *_: Any, **given: Any) -> asyncpg.Connection:
        address = await self._addresses.current()
        try:
            return await self._connected(address, given)
        except _REFUSED:
            if (exchanged := await self._addresses.after_refusal(address)) is None:
                raise
        return await self._connected(exchanged, given)

    async def _connected(self, address: PostgresAddress, given: dict[str, Any]) -> asyncpg.Connection:
        """Connect, and find out at the first time whether the server itself answers or a pooler."""
        arguments = {**given, **address.arguments(), "timeout": CONNECT_SECONDS}
        arguments["command_timeout"] = self._statement_seconds
        if address.statement_cache_size is not None:
            arguments["statement_cache_size"] = address.statement_cache_size
        elif self._direct is False:
            arguments["statement_cache_size"] = 0
        connection = await asyncpg.connect(**arguments)
        self._count(opened=1)
        connection.add_termination_listener(lambda _: self._count(opened=-1))
        if self._figures is not None:
            connection.add_query_logger(partial(_count_statement, self._figures))
        try:
            if self._direct is None:
                self._direct = await _is_direct(connection)
                if not self._direct and address.statement_cache_size is None:
                    connection.terminate()
                    return await self._connected(address, given)
            if self._direct:
                await connection.execute(_bounds(self._statement_seconds))
        except BaseException:  # the pool does not know it yet
            connection.terminate()
            raise
        return connection


def _count_statement(figures: DatabaseFigures, ended: Any) -> None:
    figures.statement(kind_of(ended.query), ended.elapsed)


def _bounds(statement_seconds: float, local: str = "") -> str:
    """A client that is stopped or cut off keeps no locks, and waits for none, for longer than this."""
    bounds = {
        "statement_timeout": 2 * statement_seconds,  # the client gives up first
        "lock_timeout": statement_seconds * 2 / 3,
        "idle_in_transaction_session_timeout": IDLE_SECONDS,
    }
    return "; ".join(f"SET {local}{name} = {max(int(seconds * 1000), 1)}" for name, seconds in bounds.items())


async def _is_direct(connection: asyncpg.Connection) -> bool:
    """Whether the process that we talk to is the one that runs statements. A pooler has numbers of its own."""
    # `execute` prepares no statement, which a pooler might refuse.
    found = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {connection.get_server_pid()}")
    return bool(found == "SELECT 1")


def _is_lost(connection: asyncpg.Connection, error: BaseException) -> bool:
    try:
        return isinstance(error, _ENDED) or bool(connection.is_closed())
    except asyncpg.InterfaceError:  # it is closed and no longer ours
        return True


async def _given_back(pool: asyncpg.Pool, connection: asyncpg.Connection) -> None:
    """Give it back when the server has confirmed a cancelled statement, else drop it."""
    try:
        await pool.release(connection, timeout=CLEANUP_SECONDS)
    except _FAILURES:
        # The server does not answer: the idle connections are no better than this one, which the pool has dropped.
        with suppress(asyncpg.InterfaceError):
            await pool.expire_connections()


async def _as_it_is(_: asyncpg.Connection) -> None:
    """Nothing here changes a session, so that nothing has to be reset, which would cost a round trip each time."""
