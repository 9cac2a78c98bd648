"""LightRAG's key-value storage in a database outside of PostgreSQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import orjson
from typing_extensions import override

from cragside.store.chunking import TEXTS
from cragside.store.postgres.lightrag_rows import note_values, texts_by_id, values_of
from cragside.store.postgres.store import PostgresStore
from cragside.store.storages import ValueStorage


@final
@dataclass
class OutsideValues(ValueStorage):
    """LightRAG's values by their ids, a namespace each."""

    @override
    async def initialize(self) -> None:
        self._store = PostgresStore.of_storage(self.global_config)
        self._store.values.add(self.namespace, self)

    @override
    async def finalize(self) -> None:
        self._store.values.remove(self.namespace, self)
        self._store.release()

    @override
    async def get_by_id(self, id: str) -> dict[str, Any] | None:
        return (await self.get_by_ids([id]))[0]

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        rows = await values_of(self._store).read(self._store.key, self.namespace, ids)
        found = {key: orjson.loads(row) for key, row in zip(ids, rows, strict=True) if row is not None}
        if self.namespace == TEXTS and (missing := [key for key in ids if key not in found]):
            # They wait to be written there.
            found |= await texts_by_id(self._store, missing)
        return [found.get(key) for key in ids]

    @override
    async def upsert(self, data: dict[str, dict[str, Any]]) -> None:
        """Write values at once. Raises `LedgerError`."""
        if data:
            async with self._store.note():
                await self.write(data)
            await self._store.journal.drain(self._store.number, self._store.key)

    async def write(self, changes: Mapping[str, dict[str, Any] | None]) -> None:
        """Note values in the journal, in the transaction that is under way; None removes."""
        rows = {key: row and {**row, "update_time": None} for key, row in changes.items()}
        await note_values(self._store, self.namespace, rows)
