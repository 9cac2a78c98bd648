"""LightRAG's key-value storage on SQLite."""

import time
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, ClassVar, final

import orjson
from lightrag.base import BaseKVStorage

from cragside.adapters.lightrag.ledger.sqlite.database import Database


@final
@dataclass
class SqliteKVStorage(BaseKVStorage):
    """Values are JSON. Each call is a transaction, so nothing waits for `index_done_callback`."""

    supports_strict_point_reads: ClassVar[bool] = True

    async def initialize(self) -> None:
        """Open the workspace's file."""
        self._db = Database.acquire(self.global_config["working_dir"])

    async def finalize(self) -> None:
        """Give the file back."""
        self._db.release()

    async def index_done_callback(self) -> None:
        """Nothing to do: every write is committed already."""

    async def get_by_id(self, id: str) -> dict[str, Any] | None:  # noqa: A002 (LightRAG's name)
        """The value, or None."""
        row = self._db.one("SELECT value FROM kv WHERE namespace = ? AND id = ?", (self.namespace, id))
        return None if row is None else self._value(id, row[0])

    async def get_by_id_strict(self, id: str) -> dict[str, Any] | None:  # noqa: A002 (LightRAG's name)
        """The value, or None when it certainly is not there."""
        return await self.get_by_id(id)

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """The values in the order of the ids, None for the missing."""
        rows = self._db.within("SELECT id, value FROM kv WHERE namespace = ? AND id IN ({})", ids, [self.namespace])
        found = {key: self._value(key, value) for key, value in rows}
        return [found.get(key) for key in ids]

    async def filter_keys(self, keys: set[str]) -> set[str]:
        """The keys that are not there."""
        rows = self._db.within("SELECT id FROM kv WHERE namespace = ? AND id IN ({})", keys, [self.namespace])
        return set(keys) - {row[0] for row in rows}

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Write values with the time of their creation and change."""
        if not data:
            return
        with self._db.transaction() as connection:
            self.write(connection, data)

    async def delete(self, ids: list[str]) -> None:
        """Remove values; missing ones are no error."""
        with self._db.transaction() as connection:
            self.erase(connection, ids)

    def write(self, connection: Connection, data: dict[str, dict[str, Any]]) -> None:
        """Write values, within a transaction of the caller's."""
        now = int(time.time())
        rows = self._db.within("SELECT id FROM kv WHERE namespace = ? AND id IN ({})", data, [self.namespace])
        known = {row[0] for row in rows}
        for key, value in data.items():
            if self.namespace.endswith("text_chunks"):
                value.setdefault("llm_cache_list", [])
            if key not in known:
                value["create_time"] = now
            value["update_time"] = now
            value["_id"] = key
        connection.executemany(
            "INSERT INTO kv VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            [(self.namespace, key, orjson.dumps(value).decode()) for key, value in data.items()],
        )

    def erase(self, connection: Connection, ids: list[str]) -> None:
        """Remove values, within a transaction of the caller's."""
        connection.executemany("DELETE FROM kv WHERE namespace = ? AND id = ?", [(self.namespace, i) for i in ids])

    async def is_empty(self) -> bool:
        """True when the namespace holds nothing."""
        return self._db.one("SELECT 1 FROM kv WHERE namespace = ? LIMIT 1", (self.namespace,)) is None

    async def drop(self) -> dict[str, str]:
        """Remove the whole namespace."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM kv WHERE namespace = ?", (self.namespace,))
        return {"status": "success", "message": "data dropped"}

    @staticmethod
    def _value(key: str, text: str) -> dict[str, Any]:
        value: dict[str, Any] = orjson.loads(text)
        value.setdefault("create_time", 0)
        value.setdefault("update_time", 0)
        value["_id"] = key
        return value
