"""Statements and transactions on one PostgreSQL database."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from copy import copy
from typing import Any, Self

import asyncpg

from cragside.adapters.postgres.address import PostgresAddress
from cragside.adapters.postgres.connections import CLEANUP_SECONDS, WAIT_SECONDS, ConnectionLost, Connections
from cragside.adapters.postgres.statements import only_reads
from cragside.adapters.renewable import Renewable, renewable
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
        """This database for one of several users, who share its connections fairly. Transactions are common to all."""
        mine = copy(self)
        mine._user = user
        return mine

    async def all(self, sql: str, *values: Any, repeat: bool = True) -> list[Any]:
        """All rows of a query. One whose functions write must not `repeat` after its answer was lost."""
        return await self._run("fetch", sql, values, repeat=repeat)  # type: ignore[no-any-return]

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
        await connection.executemany(sql, [[*map(_without_nul, row)] for row in rows], timeout=self._seconds)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """The connection of this task's transaction, or one for this block alone."""
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
        """Everything or nothing. With `snapshot`, nothing is written and all queries see one state."""
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
        """A connection of its own that only reads, and sees one state however long that takes.

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
        """Where it is, for messages: without user and password."""
        return str(self._connections.address or self.addresses)

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler answered, which gives sessions to others. False before the first connection."""
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
        """A connection with a new transaction. If the connection turns out to be dead, another one."""
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
    """Texts, also in lists, with a blank for the one character that PostgreSQL cannot hold. `storable` has one too."""
    if isinstance(value, str):
        return value.replace("\0", " ")
    if isinstance(value, list) and isinstance(next(iter(value), None), str):
        return [_without_nul(each) for each in value]
    return value


def _drop(connection: asyncpg.Connection) -> None:
    with suppress(asyncpg.InterfaceError):  # it is closed already
        connection.terminate()
