"""LightRAG's key-value storage on SQLite."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import orjson
from lightrag.base import BaseKVStorage

from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.values import erase_values, write_values
from cragside.adapters.lightrag.storages.sqlite.unused import unused


@final
@dataclass
class SqliteKVStorage(BaseKVStorage):
    """Values are JSON. Each call is a transaction, so nothing waits for `index_done_callback`."""

    drop = unused
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
            write_values(self._db, connection, self.namespace, data)

    async def delete(self, ids: list[str]) -> None:
        """Remove values; missing ones are no error."""
        with self._db.transaction() as connection:
            erase_values(connection, self.namespace, ids)

    async def is_empty(self) -> bool:
        """True when the namespace holds nothing."""
        return self._db.one("SELECT 1 FROM kv WHERE namespace = ? LIMIT 1", (self.namespace,)) is None

    @staticmethod
    def _value(key: str, text: str) -> dict[str, Any]:
        value: dict[str, Any] = orjson.loads(text)
        value.setdefault("create_time", 0)
        value.setdefault("update_time", 0)
        value["_id"] = key
        return value
