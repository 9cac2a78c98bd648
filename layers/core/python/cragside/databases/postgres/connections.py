"""Connections to one PostgreSQL database, and what their failures mean."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import lru_cache, partial
from typing import Any
from weakref import WeakValueDictionary

import asyncpg

from cragside.databases.gate import close_quietly
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.renewable import Renewable, Unreadable
from cragside.ports.clock import SYSTEM_CLOCK
from cragside.ports.telemetry import DatabaseFigures, StatementKind

_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "(INSERT", "(UPDATE", "(DELETE"})
_TRANSACTION = frozenset({"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"})
_DATA = frozenset({"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "COPY"})


def only_reads(sql: str) -> bool:
    """Return True if a statement writes nothing, so that it may run again after its answer was lost."""
    words = set(sql.split())
    return "SELECT" in words and not words & _WRITES


@lru_cache(maxsize=256)
def kind_of(sql: str) -> StatementKind:
    """Classify a statement by its first word. A function that it calls may do more."""
    first = next(iter(sql.split(maxsplit=1)), "").rstrip(";").upper()
    if first in _TRANSACTION:
        return "transaction"
    if first not in _DATA:
        return "other"
    return "read" if only_reads(sql) else "write"


CONNECT_SECONDS = 3.0
# How long a caller waits while all connections are in use.
WAIT_SECONDS = 10.0
# How long the server may take to confirm that a statement is cancelled. Then the connection is dropped.
CLEANUP_SECONDS = 1.0
# A connection that was idle for longer is replaced: a frozen function's connection is dead when it thaws.
IDLE_SECONDS = 30.0
# After a shorter silence of the whole process, which may have been frozen too, a connection has to answer in so long.
QUIET_SECONDS, SIGN_SECONDS = 1.0, 1.0

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
        self._used_at = SYSTEM_CLOCK.time()
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
        """Return True if a pooler may run two statements outside a transaction in two sessions."""
        return self._direct is False and not (self.address and self.address.statement_cache_size)

    @property
    def bounds(self) -> str:
        """Return the settings by which the server bounds a transaction, "" if its session is bounded."""
        return _bounds(self._statement_seconds, "LOCAL ") if self._direct is False else ""

    @asynccontextmanager
    async def one(self, user: str = "") -> AsyncIterator[asyncpg.Connection]:
        """Yield a connection for this block, and for one of several users if it is named.

        Raises `AllBusy`, `ConnectionLost`, `Unreadable`, and what connecting raises.
        """
        pool = await self._opened()
        async with self._place(user):
            connection = await self._answering(pool)
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
                self._used_at = SYSTEM_CLOCK.time()
                await _given_back(pool, connection)

    async def _answering(self, pool: asyncpg.Pool) -> asyncpg.Connection:
        """Return a connection. After a silence it has to answer first; otherwise it and the idle ones are replaced."""
        connection = await pool.acquire(timeout=CONNECT_SECONDS)
        if 0 <= SYSTEM_CLOCK.time() - self._used_at <= QUIET_SECONDS:
            return connection
        try:
            async with asyncio.timeout(SIGN_SECONDS):
                await connection.execute("SELECT 1")
        except _FAILURES:
            await self._ended(pool, connection)
            return await pool.acquire(timeout=CONNECT_SECONDS)
        except BaseException:
            await self._ended(pool, connection)
            raise
        return connection

    async def _ended(self, pool: asyncpg.Pool, connection: asyncpg.Connection) -> None:
        """Drop a connection that did not answer, and the idle ones, which were probably lost with it."""
        with suppress(asyncpg.InterfaceError):
            connection.terminate()
        await _given_back(pool, connection)
        await pool.expire_connections()

    @asynccontextmanager
    async def _place(self, user: str) -> AsyncIterator[None]:
        """Hold one of the user's places and one of all places."""
        free = [self._free]
        if user:
            free.insert(0, self._free_of.setdefault(user, asyncio.Semaphore(self._share)))
        async with AsyncExitStack() as taken:
            if waits := any(each.locked() for each in free):
                self._count(waiting=1)
            try:
                async with asyncio.timeout(self._wait_seconds):
                    for each in free:
                        await taken.enter_async_context(each)
            except TimeoutError:
                raise AllBusy(f"all {self._most} connections, or {self._share} of one workspace, are in use") from None
            finally:
                if waits:
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
    """Bound how long a client that is stopped or cut off keeps locks or waits for them."""
    bounds = {
        "statement_timeout": 2 * statement_seconds,  # the client gives up first
        "lock_timeout": statement_seconds * 2 / 3,
        "idle_in_transaction_session_timeout": IDLE_SECONDS,
    }
    return "; ".join(f"SET {local}{name} = {max(int(seconds * 1000), 1)}" for name, seconds in bounds.items())


async def _is_direct(connection: asyncpg.Connection) -> bool:
    """Return True if the process at the other end runs the statements itself. A pooler has numbers of its own."""
    # `execute` prepares no statement, which a pooler might refuse.
    found = await connection.execute(f"SELECT 1 WHERE pg_backend_pid() = {connection.get_server_pid()}")
    return bool(found == "SELECT 1")


def _is_lost(connection: asyncpg.Connection, error: BaseException) -> bool:
    try:
        return isinstance(error, _ENDED) or bool(connection.is_closed())
    except asyncpg.InterfaceError:  # it is closed and no longer ours
        return True


async def _given_back(pool: asyncpg.Pool, connection: asyncpg.Connection) -> None:
    """Give a connection back when the server has confirmed a cancelled statement, else drop it."""
    try:
        await pool.release(connection, timeout=CLEANUP_SECONDS)
    except _FAILURES:
        # The server does not answer: the idle connections are no better than this one, which the pool has dropped.
        with suppress(asyncpg.InterfaceError):
            await pool.expire_connections()


async def _as_it_is(_: asyncpg.Connection) -> None:
    """Skip the reset of a session, which would cost a round trip: nothing here changes one."""


# What a statement may raise. `TimeoutError` and refused connections are `OSError`.
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_MEANINGS = (
    (
        (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError, asyncpg.InvalidSchemaNameError),
        "its tables are missing",
        "has no tables yet. Run `cragside migrate`",
    ),
    (
        asyncpg.InsufficientPrivilegeError,
        "the role may not do that",
        "may not be used by the role in POSTGRES_URI. Grant it the rights in docs/postgresql.md",
    ),
    (
        asyncpg.LockNotAvailableError,
        "another client locks what is needed",
        "waits for another client of PostgreSQL, which locks what is needed. Try again; pg_stat_activity shows it",
    ),
    (
        asyncpg.ReadOnlySQLTransactionError,
        "PostgreSQL is read-only",
        "cannot be written: PostgreSQL is read-only. Use the primary server, or see why this one became read-only",
    ),
    (asyncpg.DiskFullError, "its disk is full", "has a full disk. Free some of it on PostgreSQL's machine"),
    (
        (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError),
        "a pooler gives statements to other connections",
        "is behind a pooler that keeps no prepared statements: add statement_cache_size=0 to POSTGRES_URI",
    ),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "the user or the password is wrong",
        "refuses the user or the password in POSTGRES_URI. Correct them, or let the user in with pg_hba.conf",
    ),
    (
        Unreadable,
        "its secret cannot be read",
        "is out of reach: what POSTGRES_URI_SECRET names cannot be read. The log has the reason",
    ),
    (
        asyncpg.InvalidCatalogNameError,
        "there is no such database",
        "has no database: the one that POSTGRES_URI names is not there. Create it, or correct POSTGRES_URI",
    ),
    (
        AllBusy,
        "all connections are in use",
        "is busy: all connections to PostgreSQL are in use. Try again, or raise RAG_POSTGRES_CONNECTIONS",
    ),
    (
        ssl.SSLError,
        "TLS failed",
        "is out of reach: TLS failed. Check PostgreSQL's certificate, and sslmode and sslrootcert in POSTGRES_URI",
    ),
    (
        asyncpg.CannotConnectNowError,
        "PostgreSQL is starting, stopping or recovering",
        "is out of reach: PostgreSQL is starting, stopping or recovering. Wait, or see its log",
    ),
    (
        asyncpg.TooManyConnectionsError,
        "it has too many connections",
        "has too many connections to PostgreSQL. Lower RAG_POSTGRES_CONNECTIONS, or raise its max_connections",
    ),
)
# asyncpg has no class of its own for this.
_NO_TLS = "rejected SSL upgrade"
_WITHOUT_TLS = (
    "PostgreSQL takes no TLS, or something else answers",
    "is out of reach: what answers takes no TLS, which sslmode in POSTGRES_URI asks for, or is no PostgreSQL. Set up "
    "its certificate, choose another sslmode, or correct the address",
)


def meaning_of(error: BaseException) -> tuple[str, str]:
    """Return the reason of a failure, and the end of the sentence 'The store …' with cause and remedy.

    Neither holds what was asked: that may be somebody's text.
    """
    if type(error) is ConnectionError and _NO_TLS in str(error):
        return _WITHOUT_TLS
    for kinds, reason, unusable in _MEANINGS:
        if isinstance(error, kinds):
            return reason, unusable
    if isinstance(error, asyncpg.PostgresError) and not isinstance(error, asyncpg.PostgresConnectionError):
        return f"PostgreSQL said {type(error).__name__}", "failed in PostgreSQL. See its log"
    remedy = "Start it, or correct POSTGRES_URI"
    return "PostgreSQL does not answer", f"is out of reach: PostgreSQL does not answer. {remedy}"
