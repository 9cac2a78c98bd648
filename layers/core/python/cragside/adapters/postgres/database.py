"""Connections to one PostgreSQL database, and transactions on them."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import asyncpg

from cragside.adapters.postgres.address import PostgresAddress

CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 30.0
# A connection that was idle for longer is replaced: a frozen function's connection is dead when it thaws.
IDLE_SECONDS = 30.0

# The connection broke. What waited for it in the pool has broken too, as after a restart of the server.
_LOST = (
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.ConnectionFailureError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    ConnectionError,
)


class PostgresDatabase:
    """At most `most` connections to a database, each made when it is needed.

    Statements in the task that holds a `transaction` are part of it. All may raise `asyncpg.PostgresError`,
    `asyncpg.InterfaceError`, `OSError` and `TimeoutError`.
    """

    def __init__(self, address: PostgresAddress, *, most: int, statement_seconds: float = STATEMENT_SECONDS) -> None:
        self.address = address
        self._most = most
        self._seconds = statement_seconds
        self._pool: asyncpg.Pool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._held: ContextVar[asyncpg.Connection | None] = ContextVar("held", default=None)

    async def all(self, sql: str, *values: Any) -> list[Any]:
        """All rows of a query."""
        return await self._run("fetch", sql, values)  # type: ignore[no-any-return]

    async def one(self, sql: str, *values: Any) -> Any:
        """The first row of a query, or None."""
        return await self._run("fetchrow", sql, values)

    async def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row of a query, or None."""
        return await self._run("fetchval", sql, values)

    async def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """A statement for each of the rows. Only within a transaction."""
        connection = self._held.get()
        assert connection is not None  # noqa: S101 (a defect of the caller's)
        await connection.executemany(sql, rows, timeout=self._seconds)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """The connection of this task's transaction, or one for this block alone."""
        if (held := self._held.get()) is not None:
            yield held
            return
        pool = await self._opened()
        async with pool.acquire(timeout=CONNECT_SECONDS + self._seconds) as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncIterator[None]:
        """Everything or nothing. With `snapshot`, nothing is written and all queries see one state."""
        if self._held.get() is not None:
            raise RuntimeError("This task is in a transaction already.")
        options: dict[str, Any] = {"isolation": "repeatable_read", "readonly": True} if snapshot else {}
        async with await self._begun(options) as connection:
            token = self._held.set(connection)
            try:
                yield
            finally:
                self._held.reset(token)

    async def close(self) -> None:
        """Close all connections."""
        if (pool := self._pool) is not None:
            self._pool = None
            try:
                await asyncio.wait_for(pool.close(), CONNECT_SECONDS)
            except TimeoutError:
                pool.terminate()

    async def _run(self, method: str, sql: str, values: Sequence[Any]) -> Any:
        repeatable = self._held.get() is None and sql.lstrip().startswith("SELECT")
        try:
            async with self.connection() as connection:
                return await getattr(connection, method)(sql, *values, timeout=self._seconds)
        except _LOST:
            await self._replace_idle()
            if not repeatable:
                raise
        async with self.connection() as connection:
            return await getattr(connection, method)(sql, *values, timeout=self._seconds)

    async def _begun(self, options: dict[str, Any]) -> "_Held":
        """A connection on which a transaction has begun."""
        try:
            return await _Held.begin(self.connection(), options)
        except _LOST:
            await self._replace_idle()
        return await _Held.begin(self.connection(), options)

    async def _replace_idle(self) -> None:
        """Have the pool make new connections. Those in use stay until they are given back."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def _opened(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is not None and self._loop is not asyncio.get_running_loop():
                # Connections belong to the event loop that made them. That one has ended.
                self._pool = None
            if self._pool is None:
                self._loop = asyncio.get_running_loop()
                self._pool = await asyncpg.create_pool(
                    **self.address.arguments(),
                    min_size=0,
                    max_size=self._most,
                    max_inactive_connection_lifetime=IDLE_SECONDS,
                    timeout=CONNECT_SECONDS,
                    reset=_as_it_is,
                )
            return self._pool


class _Held:
    """A connection with a transaction. Leaving the block ends the transaction and gives the connection back."""

    def __init__(self, connection: asyncpg.Connection, stack: AsyncExitStack) -> None:
        self._connection = connection
        self._stack = stack

    @classmethod
    async def begin(cls, given: AbstractAsyncContextManager[asyncpg.Connection], options: dict[str, Any]) -> "_Held":
        """Take the connection and begin the transaction."""
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(given)
            await stack.enter_async_context(connection.transaction(**options))
            return cls(connection, stack.pop_all())

    async def __aenter__(self) -> asyncpg.Connection:
        return self._connection

    async def __aexit__(self, *failure: Any) -> bool | None:
        return await self._stack.__aexit__(*failure)


async def _as_it_is(_: asyncpg.Connection) -> None:
    """Nothing here changes a session, so that nothing has to be reset, which would cost a round trip each time."""
