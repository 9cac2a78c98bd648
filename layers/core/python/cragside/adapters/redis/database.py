"""Connections to one Redis database."""

import asyncio
from collections.abc import Awaitable, Callable
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

from cragside.adapters.redis.address import RedisAddress

CONNECT_SECONDS = 3.0
COMMAND_SECONDS = 30.0
# A connection that was idle for longer is tested before it is used.
_IDLE_SECONDS = 30

T = TypeVar("T")


class RedisFailure(Exception):
    """Redis failed, for `reason`. `unusable` completes the sentence 'The store …'. Neither holds what was asked."""

    def __init__(self, reason: str, unusable: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unusable = unusable


class RedisDatabase:
    """At most `most` connections to a database, each made when it is needed. All methods may raise `RedisFailure`."""

    def __init__(self, address: RedisAddress, *, most: int, command_seconds: float = COMMAND_SECONDS) -> None:
        self.address = address
        self._most = most
        self._seconds = command_seconds
        self._client: Redis | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[Redis], Awaitable[T]]) -> T:
        """Run commands.

        `work` may run again after a broken connection, or when a key that it watches has changed.
        """
        try:
            while True:
                try:
                    return await work(self._opened())
                except WatchError:
                    continue
        except AuthenticationError as error:
            raise _failure(error) from error
        except (RedisError, OSError) as error:
            raise _failure(error) from error

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _opened(self) -> Redis:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Connections belong to the event loop that made them.
            self._loop = loop
            pool: Any = BlockingConnectionPool.from_url(
                self.address.uri,
                max_connections=self._most,
                timeout=CONNECT_SECONDS + self._seconds,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=self._seconds,
                health_check_interval=_IDLE_SECONDS,
                retry=Retry(NoBackoff(), 1),
            )
            self._client = Redis.from_pool(pool)
        return self._client


def _failure(error: BaseException) -> RedisFailure:
    """What it means for whoever runs cragside."""
    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return RedisFailure("the user or the password of Redis is wrong", "is refused by Redis: check REDIS_URI")
    if isinstance(error, ResponseError):
        code = str(error).partition(" ")[0]
        if code == "NOAUTH":
            return RedisFailure("Redis asks for a password", "is refused by Redis: check REDIS_URI")
        said = code if code.isalpha() and code.isupper() else "that it failed"
        return RedisFailure(f"Redis said {said}", "failed in Redis; see its log")
    return RedisFailure("Redis does not answer", "is out of reach: Redis does not answer")
