"""Connections to one Redis database."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisError,
    ResponseError,
    WatchError,
)
from redis.exceptions import ConnectionError as ConnectionBroken

from cragside.databases.gate import Gate, ServerFailure, close_quietly
from cragside.databases.renewable import Renewable, Unreadable, renewable
from cragside.databases.server_addresses import RedisAddress
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.telemetry import DatabaseFigures

CONNECT_SECONDS = 3.0
COMMAND_SECONDS = 30.0
# A connection that was idle for longer is tested before it is used.
_IDLE_SECONDS = 30
# Whoever changes a watched key has written what others wanted to write. That happens a few times at most.
_ATTEMPTS = 10

T = TypeVar("T")


class RedisFailure(ServerFailure):
    """Redis failed."""


class RedisDatabase:
    """At most `most` connections to a database, each made when it is needed. All methods may raise `RedisFailure`."""

    def __init__(
        self,
        address: RedisAddress | Renewable[RedisAddress],
        *,
        most: int,
        command_seconds: float = COMMAND_SECONDS,
        figures: DatabaseFigures | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._addresses: Renewable[RedisAddress] = renewable(address)
        self._address: RedisAddress | None = None
        self._most = most
        self._seconds = command_seconds
        self._client: Redis | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = Gate("Redis", RedisFailure, self._sign_of_life, most=most, clock=clock, figures=figures)

    @property
    def address(self) -> str:
        """Return the address for messages: without user and password."""
        return str(self._address or self._addresses)

    async def run(self, work: Callable[[Redis], Awaitable[T]]) -> T:
        """Run commands.

        `work` may run again after a broken connection, or when a key that it watches has changed.
        """
        async with self._gate.passed():
            for _ in range(_ATTEMPTS):
                try:
                    return await self._once(work)
                except WatchError:
                    continue
                except (RedisError, OSError) as error:
                    raise self._noted(error) from error
        raise RedisFailure(
            "others kept changing the same keys of Redis", "is busy: others write to the same keys. Try again"
        )

    async def ping(self) -> None:
        """Ask for something small. Raises as `run` does."""

        async def ping(client: Redis) -> None:
            await client.ping()

        await self.run(ping)

    async def close(self) -> None:
        """Close all connections."""
        await self._gate.stop()
        client, self._client = self._client, None
        if client is not None:
            await close_quietly("Redis", client.aclose())

    async def _once(self, work: Callable[[Redis], Awaitable[T]]) -> T:
        address = await self._addresses.current()
        try:
            return await work(self._opened(address))
        except (RedisError, OSError) as error:
            if not _is_refused(error) or (exchanged := await self._addresses.after_refusal(address)) is None:
                raise
        return await work(self._opened(exchanged))

    def _noted(self, error: Exception) -> RedisFailure:
        failure = _failure(error)
        # To the client, a refused login is a broken connection. To us it is an answer: the next one may be accepted.
        if _is_refused(error) or isinstance(error, ResponseError):
            self._gate.answered()
        # A command that takes too long says nothing of the server.
        elif isinstance(error, ConnectionBroken | OSError) and not isinstance(error, TimeoutError):
            self._gate.close_for_a_while(failure)
        return failure

    async def _sign_of_life(self) -> None:
        # The gate ends the wait.
        address = await self._addresses.current()
        async with Redis.from_url(address.uri, retry=Retry(NoBackoff(), 0)) as client:
            with suppress(AuthenticationError, ResponseError):  # a refusal is an answer
                await client.ping()

    def _opened(self, address: RedisAddress) -> Redis:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop or self._address != address:
            # Connections belong to the event loop that made them. Those to an old address end with what uses them.
            self._loop, self._address = loop, address
            pool: Any = BlockingConnectionPool.from_url(
                address.uri,
                max_connections=self._most,
                timeout=CONNECT_SECONDS + self._seconds,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=self._seconds,
                health_check_interval=_IDLE_SECONDS,
                retry=Retry(NoBackoff(), 1),
            )
            self._client = Redis.from_pool(pool)
        return self._client


def _is_refused(error: BaseException) -> bool:
    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return True
    return isinstance(error, ResponseError) and str(error).partition(" ")[0] == "NOAUTH"


def _failure(error: BaseException) -> RedisFailure:
    """Translate an error of the driver into what an operator has to know."""
    if isinstance(error, Unreadable):
        unread = "what REDIS_URI_SECRET names cannot be read"
        return RedisFailure(unread, f"is out of reach: {unread}. The log has the reason")
    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return RedisFailure(
            "the user or the password of Redis is wrong",
            "is refused by Redis. Check the user and the password in REDIS_URI",
        )
    if isinstance(error, ResponseError):
        code = str(error).partition(" ")[0]
        if code == "NOAUTH":
            return RedisFailure(
                "Redis asks for a password", "is refused by Redis. Check the user and the password in REDIS_URI"
            )
        reason = code if code.isalpha() and code.isupper() else "that it failed"
        return RedisFailure(f"Redis said {reason}", "failed in Redis. See its log")
    return RedisFailure("Redis does not answer", "is out of reach: Redis does not answer")
