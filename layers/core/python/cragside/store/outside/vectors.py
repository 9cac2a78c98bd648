"""LightRAG's vector storage in a database outside of PostgreSQL, over a small driver for each product.

cragside searches passages in PostgreSQL, by words and vectors.
"""

import asyncio
import base64
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar, final

import numpy as np
from typing_extensions import override

from cragside.ports.embedder import Vectors
from cragside.store.driver import Row, VectorChange
from cragside.store.outside.absence import left_out
from cragside.store.postgres.journal import CLOSED, Connections, Fence, Target
from cragside.store.postgres.lightrag_tables import vector_table
from cragside.store.postgres.searching import find
from cragside.store.postgres.store import PostgresStore
from cragside.store.postgres.vectors import PASSAGES, PostgresVectors
from cragside.store.storages import Found, Rows, Search

D = TypeVar("D", bound=Connections)

NAMESPACES = ("chunks", "entities", "relationships")
# What the journal calls the vectors.
ROLE = "vector"
# A question waits no longer for entities and relations: words and vectors of passages still answer it.
PATIENCE_SECONDS = 5.0


class StoredRow(NamedTuple):
    """A row of LightRAG's with its vector, [] where that was not asked for."""

    row: dict[str, Any]
    vector: list[float]


class ChangedRows(NamedTuple):
    """The rows of a collection that a change removes, updates (their vectors stay) and writes, by their ids."""

    removed: Sequence[str] = ()
    updated: Mapping[str, Row] = {}
    written: Mapping[str, StoredRow] = {}

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> "ChangedRows":
        """Read what `note` has noted of a namespace."""
        written = {name: StoredRow(row, _floats(vector)) for name, (row, vector) in noted.get("written", {}).items()}
        return cls(noted.get("removed", ()), noted.get("updated", {}), written)


class VectorTarget(Target[D]):
    """The vectors of all stores, in a collection for each of LightRAG's namespaces and each embedding model.

    The abstract methods are the driver of a product, which needs no transactions. A row has the number of the change
    that wrote it, and a collection has a fence for each store, which is written after all rows of a change. `put`
    writes neither over one of the same or a later number. So a change can be written again, and a writer that was
    stopped halfway changes nothing when it goes on: its rows lose against those that others wrote meanwhile, and it
    finds a later fence. What a change removes has to leave its number behind for `FORGET_SECONDS`, or a late writer
    would bring the row back.

    A product without conditional writes can keep this promise with rows that nobody writes over: the id of a row is
    made of the store's key, the row's own id, and number and id of the change. What comes late is then equal to what
    is there. Readers take of each id the row with the highest number that is not above the fence, a removal is a row
    too, and `put` deletes rows that were replaced `FORGET_SECONDS` ago.

    Rows of one store never show in another one. A driver raises failures of its server as `LedgerError`, which
    `translating_failures` does.
    """

    # The product's name, and the reason that is told when it takes too long.
    product: ClassVar[str]
    late: ClassVar[str]
    # LightRAG's beginning of the names of its collections.
    prefix: ClassVar[str]

    @abstractmethod
    async def server(self) -> str:
        """Return the server's version. Raises `LedgerError`, also for one that is too old."""

    @abstractmethod
    async def collections(self) -> list[str]:
        """Return the names of all collections."""

    @abstractmethod
    async def make(self, collection: str, dimensions: int) -> None:
        """Make a collection as LightRAG does, unless it is there or another process makes it meanwhile."""

    @abstractmethod
    async def fence(self, collection: str, key: str) -> Fence:
        """Return the fence of a store, an empty one if there is none or no such collection."""

    @abstractmethod
    async def put(self, collection: str, key: str, this: Fence, rows: ChangedRows, dimensions: int) -> None:
        """Write rows of a store and then its fence, each only where the number is lower: see the class.

        Also remove what was left of removed rows and stores `FORGET_SECONDS` ago.
        """

    @abstractmethod
    async def remove_rows(self, collection: str, key: str) -> None:
        """Remove all rows of a store. The fence stays."""

    @abstractmethod
    async def nearest(
        self, collection: str, key: str, vector: Sequence[float], *, least: float, most: int
    ) -> list[dict[str, Any]]:
        """Return the rows of a store with cosines of at least `least`, which is their `distance`; at most `most`."""

    @abstractmethod
    async def rows(
        self, collection: str, key: str, names: Sequence[str], *, vectors: bool = False
    ) -> dict[str, StoredRow]:
        """Return those rows of a store that are there, by their ids."""

    @abstractmethod
    def all(self, collection: str, key: str) -> AsyncIterator[list[StoredRow]]:
        """Return all rows of a store with their vectors, in batches. Nobody writes meanwhile."""

    @abstractmethod
    async def count(self, collection: str, key: str) -> int:
        """Count the rows of a store."""

    @classmethod
    def collection(cls, namespace: str, suffix: str) -> str:
        """Return LightRAG's name of a collection for the vectors of a model."""
        return f"{cls.prefix}{namespace}_{suffix}"

    @override
    async def _write(self, key: str, this: Fence, change: dict[str, Any]) -> bool:
        suffix, dimensions, rows = change["suffix"], change["dimensions"], change["rows"]
        collections = {namespace: self.collection(namespace, suffix) for namespace in NAMESPACES}
        if this.seq == 1:
            await asyncio.gather(*(self.make(name, dimensions) for name in collections.values()))
        fences = await self._fences(key, collections.values())
        if any(fence != this and not fence.comes_before(this) for fence in fences):
            return False
        lacking = [each for each, fence in zip(collections.items(), fences, strict=True) if fence != this]
        await asyncio.gather(
            *(self.put(name, key, this, ChangedRows.of(rows.get(each, {})), dimensions) for each, name in lacking)
        )
        fences = await self._fences(key, collections.values())
        if CLOSED in fences:
            # The store was removed meanwhile.
            await asyncio.gather(*(self.remove_rows(name, key) for name in collections.values()))
        return all(fence == this for fence in fences)

    @override
    async def _applied(self, key: str) -> int:
        """See the base. A change is there once all collections have it."""
        models = [names for names in (await self._models()).values() if len(names) == len(NAMESPACES)]
        return max([min(fence.seq for fence in await self._fences(key, names)) for names in models], default=0)

    @override
    async def _drop(self, key: str) -> None:
        for suffix, names in (await self._models()).items():
            dimensions = _dimensions(suffix)
            for name, fence in zip(names, await self._fences(key, names), strict=True):
                if fence.seq:
                    await self.put(name, key, CLOSED, ChangedRows(), dimensions)
                    await self.remove_rows(name, key)

    async def _models(self) -> dict[str, list[str]]:
        """Return LightRAG's collections, by what tells their model."""
        models: dict[str, list[str]] = {}
        starts = [self.collection(namespace, "") for namespace in NAMESPACES]
        for name in await self.collections():
            for start in starts:
                if name.startswith(start):
                    models.setdefault(name.removeprefix(start), []).append(name)
        return models

    async def _fences(self, key: str, collections: Iterable[str]) -> list[Fence]:
        return list(await asyncio.gather(*(self.fence(name, key) for name in collections)))


@final
@dataclass
class OutsideVectors(PostgresVectors):
    """A collection of LightRAG's for each namespace and embedding model."""

    @override
    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> Rows:
        if self.namespace == PASSAGES:
            return await super().query(query, top_k, query_embedding)
        if query_embedding is None:
            query_embedding = (await self.embedding_func([query], context="query"))[0]
        return await self.near(np.asarray(query_embedding, np.float32), top_k)

    @override
    async def find(self, search: Search, *beside: Any) -> Found:
        """See the base. While the other database is out of reach, there are passages alone."""
        entities, relations, _ = beside
        if await self._table() is None:
            return Found([], [], [], None)
        passages, near, related = await asyncio.gather(
            self._near_passages(search),
            entities.near_if_there(search, search.entities),
            relations.near_if_there(search, search.relations),
        )
        return Found(near, related, passages, None)

    async def _near_passages(self, search: Search) -> list[tuple[str, float]]:
        if search.passages is None:
            return []
        alone = Search(None, None, search.passages, search.vectors, search.related, search.most)
        return (await find(self._store, alone, self, self, self, None)).passages

    async def near_if_there(self, search: Search, text: str | None) -> Rows:
        """Return the nearest rows to a text, none if the other database does not answer in time."""
        if text is None:
            return []
        with left_out("vectors", self.namespace, self._store, ROLE):
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self.near(search.vector(text), search.related)
        return []

    async def near(self, vector: Vectors, most: int) -> Rows:
        """Return the nearest rows. Raises `LedgerError`."""
        if not (collection := await self._collection()):
            return []
        least = self.cosine_better_than_threshold
        found = await target_of(self._store).nearest(
            collection, self._store.key, vector.tolist(), least=least, most=most
        )
        return sorted(found, key=lambda row: (-row["distance"], str(row.get("id"))))

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        if not ids or not (collection := await self._collection()):
            return [None] * len(ids)
        found = await target_of(self._store).rows(collection, self._store.key, ids)
        return [found[name].row if name in found else None for name in ids]

    @override
    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, Vectors]:
        if self.namespace == PASSAGES:
            return await super().get_vectors_by_ids(ids)
        if not ids or not (collection := await self._collection()):
            return {}
        found = await target_of(self._store).rows(collection, self._store.key, ids, vectors=True)
        return {name: np.asarray(each.vector, np.float32) for name, each in found.items()}

    @override
    async def write(self, change: VectorChange) -> None:
        """Note the change in the journal, in the transaction that is under way. `Journal.drain` has it written."""
        if not (suffix := await self._suffix()):
            return
        fields = {*self.meta_fields, "created_at"}
        written = {
            name: ({field: value for field, value in row.items() if field in fields}, _bytes(vector))
            for (name, row), vector in zip(change.written.items(), change.vectors, strict=True)
        }
        removed, updated = change.removed, change.updated
        await note(self._store, self.namespace, suffix, removed=removed, updated=updated, written=written)

    @override
    async def make_tables(self, dimensions: int) -> None:
        """The first change makes the collections."""

    async def _suffix(self) -> str:
        """Return the ending of the collection's name; "" while the store has no vectors."""
        if await self._table() is None:
            return ""
        return suffix_of(str(self.embedding_func.model_name), self._dimensions or 0)

    async def _collection(self) -> str:
        suffix = await self._suffix()
        return suffix and target_of(self._store).collection(self.namespace, suffix)


def target_of(store: PostgresStore) -> VectorTarget[Any]:
    """Return the database that has the vectors of all stores. Raises `LedgerError` if its address is not set."""
    target: VectorTarget[Any] = store.journal.target(ROLE)
    return target


async def note(
    store: PostgresStore,
    namespace: str,
    suffix: str,
    *,
    removed: Sequence[str] = (),
    updated: Mapping[str, Row] | None = None,
    written: Mapping[str, tuple[Row, bytes]] | None = None,
) -> None:
    """Note changes of a namespace in the journal, in the transaction that is under way.

    `suffix` ends the names of LightRAG's collections. `written` are rows with their vectors of 32-bit floats.
    """
    now = {"created_at": int(time.time())}
    rows: dict[str, Any] = {
        "removed": list(removed),
        "updated": {name: dict(row) for name, row in (updated or {}).items()},
        "written": {
            name: [{**now, **row}, base64.b64encode(vector).decode()] for name, (row, vector) in (written or {}).items()
        },
    }
    if any(rows.values()):
        change = {"suffix": suffix, "dimensions": _dimensions(suffix), "rows": {namespace: rows}}
        await store.journal.note(store.number, ROLE, change)


def suffix_of(model: str, dimensions: int) -> str:
    """Return the ending of the names of LightRAG's collections for the vectors of a model."""
    return vector_table("", model, dimensions).removeprefix("_")


def _dimensions(suffix: str) -> int:
    return int(suffix.rpartition("_")[2].removesuffix("d"))


def _bytes(vector: Vectors) -> bytes:
    return vector.astype(np.float32).tobytes()


def _floats(vector: str) -> list[float]:
    floats: list[float] = np.frombuffer(base64.b64decode(vector), np.float32).tolist()
    return floats
