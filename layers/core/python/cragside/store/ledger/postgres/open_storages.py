"""LightRAG's storages of a store in PostgreSQL while they are open, and what the ledger writes with them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from cragside.store.ledger.changes import GraphChange, Row, VectorChange
from cragside.store.ledger.entries import TEXTS
from cragside.store.ledger.failures import LedgerError

if TYPE_CHECKING:
    from cragside.ports.embedder import Vectors

T = TypeVar("T")

_PASSAGES = "chunks"
# LightRAG has one graph for each workspace.
GRAPH = "graph"


class ValueTable(Protocol):
    """A namespace of LightRAG's key-value storage."""

    async def write(self, changes: dict[str, dict[str, Any] | None]) -> None:
        """Write values, and remove those that are None."""


class VectorTable(Protocol):
    """A namespace of LightRAG's vector storage."""

    async def write(self, change: VectorChange) -> None:
        """Write and remove rows."""

    async def make_tables(self, dimensions: int) -> None:
        """Make the tables for vectors of this length, unless they are there."""

    async def make_indexes(self) -> None:
        """Make the indexes that a large workspace needs, unless they are there."""


class GraphTables(Protocol):
    """LightRAG's graph storage."""

    async def write(self, nodes: Mapping[str, Row | None], edges: Mapping[tuple[str, str], Row | None]) -> None:
        """Write nodes and edges as they are to be, and remove those that are None."""

    async def sizes(self) -> tuple[int, int]:
        """Count the nodes and the edges."""


class Opened(Generic[T]):
    """Storages of one kind by their namespaces.

    A store may be open several times in a process. All of its storages write the same rows, so that one is enough: the
    one that has been open for longest.
    """

    def __init__(self) -> None:
        self._open: dict[str, list[T]] = {}

    def add(self, namespace: str, storage: T) -> None:
        """Note that a storage is open."""
        self._open.setdefault(namespace, []).append(storage)

    def remove(self, namespace: str, storage: T) -> None:
        """Note that a storage is closed."""
        self._open[namespace] = [each for each in self._open.get(namespace, ()) if each is not storage]

    def get(self, namespace: str) -> T | None:
        """The storage of a namespace, None while none is open."""
        return next(iter(self._open.get(namespace, ())), None)

    def any(self) -> T:
        """The storage of some namespace. Raises `LedgerError` while none is open."""
        return self[next((namespace for namespace, storages in self._open.items() if storages), "")]

    def __getitem__(self, namespace: str) -> T:
        """The storage of a namespace to write to. Raises `LedgerError` while none is open."""
        if (storage := self.get(namespace)) is None:
            raise LedgerError("its storages are closed", "was closed meanwhile. Try again")
        return storage


class OpenStorages:
    """LightRAG's storages, from their `initialize` to their `finalize`. Whoever writes needs them open."""

    def __init__(self) -> None:
        self.values: Opened[ValueTable] = Opened()
        self.vectors: Opened[VectorTable] = Opened()
        self.graphs: Opened[GraphTables] = Opened()

    async def write_texts(self, texts: Mapping[str, dict[str, Any] | None]) -> None:
        """Write what LightRAG reads passages from; None removes."""
        if texts:
            await self.values[TEXTS].write(dict(texts))

    async def make_vector_tables(self, dimensions: int) -> None:
        """Make LightRAG's tables for vectors of this length, unless they are there."""
        await self.vectors.any().make_tables(dimensions)

    async def make_indexes(self) -> None:
        """Make the indexes that a large workspace needs, unless the storages are closed."""
        if storage := self.vectors.get(_PASSAGES):
            await storage.make_indexes()

    async def erase_texts(self, ids: Collection[str]) -> None:
        """Take passages out of LightRAG's storages."""
        await self.write_texts(dict.fromkeys(ids))
        if ids:
            await self.vectors[_PASSAGES].write(VectorChange(list(ids), {}, {}, np.empty((0, 0), np.float32)))

    async def write_chunk_vectors(self, rows: Mapping[str, Row], vectors: "Vectors") -> None:
        """Write the vectors of passages for LightRAG's server; cragside has them in `searched`."""
        if rows:
            full = {key: {"tokens": 0, "chunk_order_index": 0, **row} for key, row in rows.items()}
            await self.vectors[_PASSAGES].write(VectorChange([], {}, full, vectors))

    async def write_graph(self, change: GraphChange) -> None:
        """Write a change of the graph."""
        if change.nodes or change.edges:
            await self.graphs[GRAPH].write(change.nodes, change.edges)
        for namespace, changed in change.vectors.items():
            if changed.removed or changed.updated or changed.written:
                await self.vectors[namespace].write(changed)
        for namespace, values in change.values.items():
            if values:
                await self.values[namespace].write(dict(values))
