"""LightRAG's keys in Redis."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson
from typing_extensions import override

from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.redis.fence import FencedRedis

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import Pipeline

_LISTED = "doc_status"
_NO_FILE = (None, "", "unknown_source", "no-file-path")


class RedisKv(FencedRedis):
    """Values by `KEY_NAMESPACE:ID`, as JSON. A change has them by namespaces and ids, None for what goes."""

    role = "kv"

    async def read(self, key: str, namespace: str, ids: Sequence[str]) -> list[bytes | None]:
        """The JSON of values in the order of the ids. Raises `LedgerError`."""

        async def get(redis: "Redis") -> list[bytes | None]:
            found: Any = await redis.mget([f"{key}_{namespace}:{each}" for each in ids])
            return list(found)

        return await self.run(get) if ids else []

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

    @override
    def _has(self, key: str, name: str) -> bool:
        return not name.startswith(f"{key}_{_LISTED}")


class RedisListing(FencedRedis):
    """Documents by `KEY_doc_status:ID`, as JSON, and the indexes by which LightRAG finds them.

    A change has `rows` by ids, None for what goes, and `steps`: new fields of rows that are there.
    """

    role = _LISTED

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

    @override
    def _has(self, key: str, name: str) -> bool:
        return name.startswith(f"{key}_{_LISTED}")

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


def values_of(store: PostgresStore) -> RedisKv:
    """Redis, which has the values of all stores."""
    target = store.journal.target("kv")
    if not isinstance(target, RedisKv):
        raise TypeError("The values of this store are not in Redis.")
    return target
