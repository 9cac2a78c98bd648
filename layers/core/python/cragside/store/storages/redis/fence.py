"""Writes of the journal's changes to Redis, in order and once each."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from typing_extensions import override

from cragside.databases.redis import RedisDatabase, RedisFailure
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.journal import ChangesMissing, Outside

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import Pipeline

T = TypeVar("T")

# Whatever a stopped writer still has to write comes before this.
_NEVER_AGAIN = 2**62
# No writer is stopped for longer than a week.
_FORGET_SECONDS = 7 * 24 * 3600
_SCANNED_AT_ONCE = 1000


class FencedRedis(Outside):
    """A role's share of all stores in a Redis database. Keys of a store begin with its own key, as LightRAG's do."""

    role: str

    def __init__(self, database: RedisDatabase) -> None:
        self._database = database

    @property
    def address(self) -> str:
        """Return the address of the database, without user and password."""
        return str(self._database.address)

    async def run(self, work: "Callable[[Redis], Awaitable[T]]") -> T:
        """Run commands; see `RedisDatabase.run`. Raises `LedgerError`."""
        try:
            return await self._database.run(work)
        except RedisFailure as error:
            raise LedgerError(error.reason, error.unusable) from error

    @override
    async def write(self, key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        """See the base. All of a change is one transaction, which ends without effect if another writer was faster."""
        fence = self._fence(key)

        async def apply(redis: "Redis") -> bool:
            async with redis.pipeline(transaction=True) as pipe:
                await pipe.watch(fence)
                found: Any = await pipe.hmget(fence, ["applied", "change"])
                applied, last = int(found[0] or 0), (found[1] or b"").decode()
                if applied >= seq:
                    return applied == seq and last == str(change_id)
                if applied != seq - 1:
                    raise ChangesMissing("Redis lacks earlier changes", "has older values in Redis")
                await self._prepare(pipe, key, change)
                pipe.hset(fence, mapping={"applied": seq, "change": str(change_id)})
                await pipe.execute()
                return True

        return await self.run(apply)

    @override
    async def applied(self, key: str) -> int:
        async def read(redis: "Redis") -> int:
            return int(await redis.hget(self._fence(key), "applied") or 0)

        return await self.run(read)

    @override
    async def drop(self, key: str) -> None:
        fence = self._fence(key)

        async def remove(redis: "Redis") -> None:
            async with redis.pipeline(transaction=True) as pipe:
                pipe.hset(fence, mapping={"applied": _NEVER_AGAIN, "change": ""})
                pipe.expire(fence, _FORGET_SECONDS)
                await pipe.execute()
            found: list[bytes] = []
            async for name in redis.scan_iter(match=f"{key}_*", count=_SCANNED_AT_ONCE):
                if self._has(key, name.decode()):
                    found.append(name)
                if len(found) == _SCANNED_AT_ONCE:
                    await redis.unlink(*found)
                    found = []
            if found:
                await redis.unlink(*found)

        await self.run(remove)

    @override
    async def close(self) -> None:
        await self._database.close()

    @abstractmethod
    async def _prepare(self, pipe: "Pipeline", key: str, change: dict[str, Any]) -> None:
        """Read what the change depends on, begin the transaction and add its commands."""

    @abstractmethod
    def _has(self, key: str, name: str) -> bool:
        """Return True if a key of Redis that begins with a store's is of this role."""

    def _fence(self, key: str) -> str:
        return f"cragside:fence:{key}:{self.role}"
