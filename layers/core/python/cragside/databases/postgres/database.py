"""Statements and transactions on one PostgreSQL database."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from copy import copy
from typing import Any, NamedTuple, Self

import asyncpg

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import (
    CLEANUP_SECONDS,
    WAIT_SECONDS,
    ConnectionLost,
    Connections,
    only_reads,
)
from cragside.databases.renewable import Renewable, renewable
from cragside.ports.telemetry import DatabaseFigures

STATEMENT_SECONDS = 30.0
_SLOWEST_READER_SECONDS = 600


class PostgresDatabase:
    """Statements on at most `most` connections.

    Statements in the task that holds a `transaction` are part of it. All may raise `asyncpg.PostgresError`,
    `asyncpg.InterfaceError`, `OSError` and `TimeoutError`. When a task is cancelled, so is its statement on the server.
    """

    def __init__(
        self,
        address: PostgresAddress | Renewable[PostgresAddress],
        *,
        most: int,
        statement_seconds: float = STATEMENT_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
        figures: DatabaseFigures | None = None,
    ) -> None:
        self.addresses: Renewable[PostgresAddress] = renewable(address)
        self.figures = figures
        self._connections = Connections(
            self.addresses, most=most, statement_seconds=statement_seconds, wait_seconds=wait_seconds, figures=figures
        )
        self._seconds = statement_seconds
        self._held: ContextVar[asyncpg.Connection | None] = ContextVar("held", default=None)
        self._user = ""

    def of(self, user: str) -> Self:
        """Return the same database for one of several users, who share its connections fairly."""
        mine = copy(self)
        mine._user = user
        return mine

    async def all(self, sql: str, *values: Any, repeat: bool = True) -> list[Any]:
        """Return all rows of a query. Pass `repeat=False` if a function of it writes: its answer may get lost."""
        return await self._run("fetch", sql, values, repeat=repeat)  # type: ignore[no-any-return]

    async def one(self, sql: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""
        return await self._run("fetchrow", sql, values)

    async def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row of a query, or None."""
        return await self._run("fetchval", sql, values)

    async def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows, within a transaction only."""
        connection = self._held.get()
        assert connection is not None  # noqa: S101 (a defect of the caller's)
        await connection.executemany(sql, [[*map(_without_nul, row)] for row in rows], timeout=self._seconds)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Yield the connection of this task's transaction, or one for this block alone."""
        if (held := self._held.get()) is not None:
            yield held
            return
        async with self._lent() as connection:
            if not self._connections.session_changes:
                yield connection
                return
            # Otherwise a pooler might prepare a statement in one session and run it in another.
            async with _finished(await self._begun(connection), connection, self._seconds):
                yield connection

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncIterator[None]:
        """Commit everything in the block or nothing. With `snapshot` the block only reads, and sees one state."""
        if self._held.get() is not None:
            raise RuntimeError("This task is in a transaction already.")
        options: dict[str, Any] = {"isolation": "repeatable_read", "readonly": True} if snapshot else {}
        async with AsyncExitStack() as stack:
            connection, begun = await self._connected_and_begun(stack, options)
            await stack.enter_async_context(_finished(begun, connection, self._seconds))
            token = self._held.set(connection)
            try:
                yield
            finally:
                self._held.reset(token)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[asyncpg.Connection]:
        """Yield a connection of its own that only reads, and sees one state for as long as the block lasts.

        Statements of this task are no part of it.
        """
        async with AsyncExitStack() as stack:
            options = {"isolation": "repeatable_read", "readonly": True}
            connection, begun = await self._connected_and_begun(stack, options)
            await stack.enter_async_context(_finished(begun, connection, self._seconds))
            # Whoever takes the rows may take its time.
            await connection.execute(
                f"SET LOCAL idle_in_transaction_session_timeout = {_SLOWEST_READER_SECONDS * 1000}"
            )
            yield connection

    @property
    def address(self) -> str:
        """Return the address for messages: without user and password."""
        return str(self._connections.address or self.addresses)

    @property
    def is_pooled(self) -> bool:
        """Return True if a pooler answered, which shares sessions. False before the first connection."""
        return bool(self._connections.bounds)

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    def _lent(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        return self._connections.one(self._user)

    async def _run(self, method: str, sql: str, values: Sequence[Any], *, repeat: bool = True) -> Any:
        values = [_without_nul(value) for value in values]
        try:
            async with self.connection() as connection:
                return await getattr(connection, method)(sql, *values, timeout=self._seconds)
        except ConnectionLost:
            if self._held.get() is not None or not (repeat and only_reads(sql)):
                raise
        async with self.connection() as connection:
            return await getattr(connection, method)(sql, *values, timeout=self._seconds)

    async def _connected_and_begun(
        self, stack: AsyncExitStack, options: dict[str, Any]
    ) -> tuple[asyncpg.Connection, Any]:
        """Begin a transaction on a connection; on another one if the first turns out to be dead."""
        try:
            return await self._entered(stack, options)
        except ConnectionLost:
            return await self._entered(stack, options)

    async def _entered(self, stack: AsyncExitStack, options: dict[str, Any]) -> tuple[asyncpg.Connection, Any]:
        async with AsyncExitStack() as trial:
            connection = await trial.enter_async_context(self._lent())
            begun = await self._begun(connection, **options)
            stack.push_async_exit(trial.pop_all().__aexit__)
        return connection, begun

    async def _begun(self, connection: asyncpg.Connection, **options: Any) -> Any:
        transaction = connection.transaction(**options)
        try:
            async with asyncio.timeout(self._seconds):
                await transaction.start()
                if bounds := self._connections.bounds:
                    await connection.execute(bounds)
        except BaseException:
            _drop(connection)
            raise
        return transaction


@asynccontextmanager
async def _finished(begun: Any, connection: asyncpg.Connection, seconds: float) -> AsyncIterator[None]:
    """Commit at the end of the block. If it fails, roll back; without an answer to that, drop the connection."""
    try:
        yield
    except BaseException:
        try:
            async with asyncio.timeout(CLEANUP_SECONDS):
                await begun.rollback()
        except BaseException:
            _drop(connection)
        raise
    try:
        async with asyncio.timeout(seconds):
            await begun.commit()
    except asyncpg.PostgresError:
        raise  # the server has undone it
    except BaseException:
        _drop(connection)
        raise


def _without_nul(value: Any) -> Any:
    """Replace NUL, the one character that PostgreSQL cannot hold, by a blank in texts and lists, as `storable` does."""
    if isinstance(value, str):
        return value.replace("\0", " ")
    if isinstance(value, list) and isinstance(next(iter(value), None), str):
        return [_without_nul(each) for each in value]
    return value


def _drop(connection: asyncpg.Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # it is closed already
        connection.terminate()


_STATE = """SELECT split_part(current_setting('server_version'), ' ', 1),
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
    (SELECT extversion FROM pg_extension WHERE extname = 'age'),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::integer,
    (SELECT count(*) FROM pg_class WHERE relkind = 'r'
        AND (relnamespace = to_regnamespace('crag')
            OR relnamespace = to_regnamespace('public') AND relname LIKE 'lightrag\\_%')
        AND NOT has_table_privilege(oid, 'SELECT') OR relkind = 'r' AND relnamespace = to_regnamespace('crag')
        AND relname <> 'schema_version' AND NOT has_table_privilege(oid, 'INSERT'))"""


class ServerState(NamedTuple):
    """`vector` and `age` are versions, None if they are not there. `forbidden` tables may not be used by the role."""

    version: str
    vector: str | None
    age: str | None
    connections: int
    most_connections: int
    forbidden: int


async def state_of(database: PostgresDatabase) -> ServerState:
    """Ask the server for its state. A role without a monitor's rights sees that a connection exists, no more."""
    return ServerState(*await database.one(_STATE))
