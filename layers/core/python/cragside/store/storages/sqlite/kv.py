"""LightRAG's key-value storage on SQLite."""

from dataclasses import dataclass
from typing import Any, final

import orjson
from typing_extensions import override

from cragside.store.ledger.sqlite.database import Database
from cragside.store.ledger.sqlite.lightrag_rows import write_values
from cragside.store.storages.interface import ValueStorage


@final
@dataclass
class SqliteKVStorage(ValueStorage):
    """Values are JSON."""

    @override
    async def initialize(self) -> None:
        self._db = Database.acquire(self.global_config["working_dir"])

    @override
    async def finalize(self) -> None:
        self._db.release()

    @override
    async def get_by_id(self, id: str) -> dict[str, Any] | None:
        row = self._db.one("SELECT value FROM kv WHERE namespace = ? AND id = ?", (self.namespace, id))
        return None if row is None else self._value(id, row[0])

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        rows = self._db.within("SELECT id, value FROM kv WHERE namespace = ? AND id IN ({})", ids, [self.namespace])
        found = {key: self._value(key, value) for key, value in rows}
        return [found.get(key) for key in ids]

    @override
    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        if not data:
            return
        with self._db.transaction():
            write_values(self._db, self.namespace, data)

    @staticmethod
    def _value(key: str, text: str) -> dict[str, Any]:
        value: dict[str, Any] = orjson.loads(text)
        value.setdefault("create_time", 0)
        value.setdefault("update_time", 0)
        value["_id"] = key
        return value
