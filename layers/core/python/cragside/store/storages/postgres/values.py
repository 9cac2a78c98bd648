"""LightRAG's key-value storage in PostgreSQL."""

from dataclasses import dataclass
from typing import Any, final

from typing_extensions import override

from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.interface import ValueStorage
from cragside.store.storages.postgres.lightrag_postgres import PGKVStorage
from cragside.store.storages.postgres.seam import SharedDatabase


@final
@dataclass
class PostgresValues(PGKVStorage, ValueStorage):
    """LightRAG's tables, a namespace each."""

    @override
    async def initialize(self) -> None:
        self._store = PostgresStore.of_storage(self.global_config)
        self.workspace = self._store.key
        self.db = SharedDatabase(self._store.database)
        self._store.values.add(self.namespace, self)

    @override
    async def finalize(self) -> None:
        self._store.values.remove(self.namespace, self)
        self._store.release()

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        return await super().get_by_ids(ids) if ids else []

    async def write(self, changes: dict[str, dict[str, Any] | None]) -> None:
        """Write values, and remove those that are None."""
        if gone := [key for key, value in changes.items() if value is None]:
            await self.delete(gone)
        await self.upsert({key: value for key, value in changes.items() if value is not None})
