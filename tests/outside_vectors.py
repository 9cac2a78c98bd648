"""Vectors outside of PostgreSQL in memory: the least that a driver for another product has to do."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import override

from cragside.store.outside.vectors import ChangedRows, StoredRow, VectorTarget
from cragside.store.postgres.journal import Fence


@dataclass
class Collection:
    """Rows by the keys of stores and their own ids, None for a removed one, each with the number of its change."""

    rows: dict[tuple[str, str], tuple[int, StoredRow | None]] = field(default_factory=dict)
    fences: dict[str, Fence] = field(default_factory=dict)


@dataclass
class Memory:
    """A server that several processes share."""

    address: str = "memory"
    collections: dict[str, Collection] = field(default_factory=dict)

    async def close(self) -> None:
        """Nothing is open."""


class VectorsInMemory(VectorTarget[Memory]):
    """A driver for it. The condition of `put` is looked at row by row, as products do."""

    product = "memory"
    share = "its share in memory"
    late = "memory does not answer"
    prefix = "lightrag_vdb_"

    @override
    async def server(self) -> str:
        return "1"

    @override
    async def collections(self) -> list[str]:
        return list(self._database.collections)

    @override
    async def make(self, collection: str, dimensions: int) -> None:
        self._database.collections.setdefault(collection, Collection())

    @override
    async def fence(self, collection: str, key: str) -> Fence:
        found = self._database.collections.get(collection, Collection())
        return found.fences.get(key, Fence())

    @override
    async def put(self, collection: str, key: str, this: Fence, rows: ChangedRows, dimensions: int) -> None:
        written = self._database.collections[collection]
        changed: dict[str, StoredRow | None] = dict.fromkeys(rows.removed)
        for name, row in rows.updated.items():
            if old := written.rows.get((key, name), (0, None))[1]:
                made = {field: old.row[field] for field in ("created_at",) if field in old.row}
                changed[name] = StoredRow({**old.row, **row, **made}, old.vector)
        changed |= {name: StoredRow({**new.row, "id": name}, new.vector) for name, new in rows.written.items()}
        for name, stored in changed.items():
            if written.rows.get((key, name), (0, None))[0] < this.seq:
                written.rows[key, name] = this.seq, stored
        if written.fences.get(key, Fence()).seq < this.seq:
            written.fences[key] = this

    @override
    async def remove_rows(self, collection: str, key: str) -> None:
        found = self._database.collections[collection]
        found.rows = {of: row for of, row in found.rows.items() if of[0] != key}

    @override
    async def nearest(
        self, collection: str, key: str, vector: Sequence[float], *, least: float, most: int
    ) -> list[dict[str, Any]]:
        def cosine(other: Sequence[float]) -> float:
            return float(np.dot(vector, other) / (np.linalg.norm(vector) * np.linalg.norm(other)))

        found = [{**each.row, "distance": cosine(each.vector)} for each in self._rows(collection, key)]
        near = [row for row in found if row["distance"] >= least]
        return sorted(near, key=lambda row: -row["distance"])[:most]

    @override
    async def rows(
        self, collection: str, key: str, names: Sequence[str], *, vectors: bool = False
    ) -> dict[str, StoredRow]:
        return {each.row["id"]: each for each in self._rows(collection, key) if each.row["id"] in names}

    @override
    async def all(self, collection: str, key: str) -> AsyncIterator[list[StoredRow]]:
        if found := self._rows(collection, key):
            yield found

    @override
    async def count(self, collection: str, key: str) -> int:
        return len(self._rows(collection, key))

    def _rows(self, collection: str, key: str) -> list[StoredRow]:
        rows = self._database.collections[collection].rows
        return [stored for (owner, _), (_, stored) in rows.items() if owner == key and stored is not None]
