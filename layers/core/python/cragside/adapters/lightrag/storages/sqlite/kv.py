"""LightRAG's key-value storage on SQLite."""

from dataclasses import dataclass
from typing import Any, final

import orjson
from lightrag.base import BaseKVStorage

from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.ledger.sqlite.values import write_values
from cragside.adapters.lightrag.storages.sqlite.unused import unused


@final
@dataclass
class SqliteKVStorage(BaseKVStorage):
    """Values are JSON. Each call is a transaction, so nothing waits for `index_done_callback`."""

    filter_keys = is_empty = delete = drop = unused

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

    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        """The values in the order of the ids, None for the missing."""
        rows = self._db.within("SELECT id, value FROM kv WHERE namespace = ? AND id IN ({})", ids, [self.namespace])
        found = {key: self._value(key, value) for key, value in rows}
        return [found.get(key) for key in ids]

    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Write values with the time of their creation and change."""
        if not data:
            return
        with self._db.transaction() as connection:
            write_values(self._db, connection, self.namespace, data)

    @staticmethod
    def _value(key: str, text: str) -> dict[str, Any]:
        value: dict[str, Any] = orjson.loads(text)
        value.setdefault("create_time", 0)
        value.setdefault("update_time", 0)
        value["_id"] = key
        return value
