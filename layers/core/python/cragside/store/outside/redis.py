"""LightRAG's keys in Redis."""

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from typing_extensions import override

from cragside.databases.redis import RedisDatabase
from cragside.store.postgres.journal import CLOSED, FORGET_SECONDS, Fence, Target, translating_failures

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import Pipeline

_LISTED = "doc_status"
_NO_FILE = (None, "", "unknown_source", "no-file-path")
_SCANNED_AT_ONCE = 1000


class RedisTarget(Target[RedisDatabase]):
    """A role's share of all stores. Keys of a store begin with its own key, as LightRAG's do."""

    role: ClassVar[str]

    @override
    async def _write(self, key: str, this: Fence, change: dict[str, Any]) -> bool:
        """See the base. All of a change is one transaction, which ends without effect if another writer was faster."""
        fence = self._fence(key)

        async def apply(redis: "Redis") -> bool:
            async with redis.pipeline(transaction=True) as pipe:
                await pipe.watch(fence)
                found: Any = await pipe.hmget(fence, ["applied", "change"])
                latest = Fence(int(found[0] or 0), (found[1] or b"").decode())
                if not latest.comes_before(this):
                    return latest == this
                await self._prepare(pipe, key, change)
                pipe.hset(fence, mapping={"applied": this.seq, "change": this.change})
                await pipe.execute()
                return True

        return await self._database.run(apply)

    @override
    async def _applied(self, key: str) -> int:
        async def read(redis: "Redis") -> int:
            return int(await redis.hget(self._fence(key), "applied") or 0)

        return await self._database.run(read)

    @override
    async def _drop(self, key: str) -> None:
        fence = self._fence(key)

        async def remove(redis: "Redis") -> None:
            async with redis.pipeline(transaction=True) as pipe:
                pipe.hset(fence, mapping={"applied": CLOSED.seq, "change": CLOSED.change})
                pipe.expire(fence, FORGET_SECONDS)
                await pipe.execute()
            found: list[bytes] = []
            async for name in redis.scan_iter(match=f"{key}_*", count=_SCANNED_AT_ONCE):
                if name.decode().startswith(f"{key}_{_LISTED}") == (self.role == _LISTED):
                    found.append(name)
                if len(found) == _SCANNED_AT_ONCE:
                    await redis.unlink(*found)
                    found = []
            if found:
                await redis.unlink(*found)

        await self._database.run(remove)

    @abstractmethod
    async def _prepare(self, pipe: "Pipeline", key: str, change: dict[str, Any]) -> None:
        """Read what the change depends on, begin the transaction and add its commands."""

    def _fence(self, key: str) -> str:
        return f"cragside:fence:{key}:{self.role}"


class RedisValues(RedisTarget):
    """Values by `KEY_NAMESPACE:ID`, as JSON. A change has them by namespaces and ids, None for what goes."""

    role = "kv"
    share = "its share in Redis"

    async def read(self, key: str, namespace: str, ids: Sequence[str]) -> list[bytes | None]:
        """Return the JSON of values in the order of the ids. Raises `LedgerError`."""

        async def get(redis: "Redis") -> list[bytes | None]:
            found: Any = await redis.mget([f"{key}_{namespace}:{each}" for each in ids])
            return list(found)

        async with translating_failures():
            return await self._database.run(get) if ids else []

    @override
    async def _prepare(self, pipe: "Pipeline", key: str, change: dict[str, Any]) -> None:
        rows = {f"{key}_{space}:{each}": (each, row) for space, rows in change.items() for each, row in rows.items()}
        known: Any = await pipe.mget(list(rows)) if rows else []
        now = int(time.time())
        pipe.multi()  # type: ignore[no-untyped-call]
        for (name, (each, row)), old in zip(rows.items(), known, strict=True):
            if row is None:
                pipe.delete(name)
                continue
            given = {"create_time": row.get("create_time"), "update_time": row.get("update_time")}
            if old:
                given["create_time"] = orjson.loads(old).get("create_time", 0)
            times = {field: now if seconds is None else seconds for field, seconds in given.items()}
            pipe.set(name, orjson.dumps({**row, **times, "_id": each}))


class RedisListing(RedisTarget):
    """Documents by `KEY_doc_status:ID`, as JSON, and the indexes by which LightRAG finds them.

    A change has `rows` by ids, None for what goes, and `steps`: new fields of rows that are there.
    """

    role = _LISTED
    share = "its list of documents in Redis"

    @override
    async def _prepare(self, pipe: "Pipeline", key: str, change: dict[str, Any]) -> None:
        rows, steps = change.get("rows", {}), change.get("steps", {})
        ids = [*dict.fromkeys([*rows, *steps])]
        known: Any = await pipe.mget([f"{key}_{_LISTED}:{each}" for each in ids]) if ids else []
        pipe.multi()  # type: ignore[no-untyped-call]
        for each, old in zip(ids, known, strict=True):
            before = orjson.loads(old) if old else None
            row = rows.get(each) if each in rows else before
            if row is not None and each in steps:
                row = {**row, **steps[each]}
            if row is not None and before is not None:
                row["created_at"] = before["created_at"]
            self._replace(pipe, key, each, before, row)

    @staticmethod
    def _replace(
        pipe: "Pipeline", key: str, document: str, before: dict[str, Any] | None, row: dict[str, Any] | None
    ) -> None:
        name, indexes = f"{key}_{_LISTED}:{document}", f"{key}_{_LISTED}__sched"
        if before is not None:
            pipe.zrem(f"{indexes}:status:{before['status']}", f"{before['created_at']}|{document}")
            pipe.srem(f"{indexes}:basename:{before['file_path']}", document)
        if row is None:
            pipe.delete(name)
            return
        pipe.set(name, orjson.dumps(row))
        pipe.zadd(f"{indexes}:status:{row['status']}", {f"{row['created_at']}|{document}": 0})
        if row["file_path"] not in _NO_FILE:
            pipe.sadd(f"{indexes}:basename:{row['file_path']}", document)
