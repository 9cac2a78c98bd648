"""The content of one workspace in PostgreSQL, as its ledger and LightRAG's open storages share it."""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.names import owner_of
from cragside.store.chunking import TEXTS
from cragside.store.driver import GraphChange, Row, Since, VectorChange
from cragside.store.errors import LedgerError, StoreRemoved
from cragside.store.postgres.schema import check_version, translating

if TYPE_CHECKING:
    from cragside.ports.embedder import Vectors
    from cragside.store.postgres.journal import Journal

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


logger = logging.getLogger("cragside")

# What a workspace's store is now, as a part that any statement may join.
NOW = "SELECT id, state, embedding_model FROM crag.store WHERE workspace = {workspace}"
# One row, with the format of the tables even if there is no such store.
_FIND = """SELECT format.version, store.id, key, storages, embedding_model, dimensions
    FROM (SELECT max(version) AS version FROM crag.schema_version) AS format
    LEFT JOIN crag.store ON workspace = $1"""
_MAKE = "INSERT INTO crag.store (workspace, key, storages) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING key"
# First in each transaction: two of a store never wait for each other halfway, because the second one waits here.
_TOUCH = "UPDATE crag.store SET state = state + 1 WHERE id = $1 RETURNING 1"
_NAMED = "SELECT kind, count(DISTINCT name) FROM crag.mention WHERE store = $1 GROUP BY kind"
# After so many transactions of this process, a workspace may have become large.
_WRITES = 100
# Whoever has changed something waits no longer until other databases have it too. It is written there all the same.
PUBLISH_SECONDS = 3.0
# What shows the graph waits no longer until it is written.
GRAPH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NewStores:
    """Rules for new stores: LightRAG's storages by their roles, and the work of `make` for a new key.

    `make` runs in the transaction that makes the store.
    """

    storages: Mapping[str, str]
    make: Callable[[PostgresDatabase, str], Awaitable[None]] | None = None


class PostgresStore(OpenStorages):
    """Statements for one workspace. Failures are `LedgerError`.

    `$1` of each statement is the store's number.
    """

    _open: ClassVar[dict[str, Any]] = {}

    def __init__(self, database: PostgresDatabase, folder: Path, journal: "Journal", number: int, place: str) -> None:
        super().__init__()
        self.database = database.of(owner_of(folder.name))
        self.journal = journal
        # Another store may get the workspace's name. This one keeps its number then, and can no longer be written.
        self.number = number
        # The store that has the leases of this one, because it took its place.
        self.successor: int | None = None
        # LightRAG's name of the workspace.
        self.key = ""
        # The classes of LightRAG's storages that it was made with, by their roles.
        self.storages: Mapping[str, str] = {}
        # Of the model that built the store, when it was last opened.
        self.model: str | None = None
        self.dimensions: int | None = None
        self._users = 0
        self._folder = folder
        self._place = place
        self._writes = 0
        self._indexing: asyncio.Task[None] | None = None

    @classmethod
    async def acquire(
        cls, folder: Path, database: PostgresDatabase, journal: "Journal", new: NewStores | None = None
    ) -> Self:
        """Return the store of a folder's name; each acquire needs its `release`. Without `new`, it has to be there.

        Raises `LedgerError`, also for tables of another version of cragside.
        """
        async with translating():
            version, number, *facts = await database.one(_FIND, folder.name)
            check_version(version)
            if number is None and new is not None:
                await _make(database, folder.name, new)
                version, number, *facts = await database.one(_FIND, folder.name)
        if number is None:
            raise LedgerError("there is no such store", "is not there")
        place = place_of(database, folder, str(number))
        known: Self = cls._open.setdefault(place, cls(database, folder, journal, number, place))
        known.key, storages, known.model, known.dimensions = facts
        known.storages = json.loads(storages)
        known._users += 1
        return known

    @classmethod
    def of_storage(cls, global_config: Mapping[str, Any]) -> "PostgresStore":
        """Return the store of a storage's configuration, which its ledger has opened; it needs its `release`."""
        known: PostgresStore = cls._open[global_config["vector_db_storage_cls_kwargs"]["store"]]
        known._users += 1
        return known

    @property
    def workspace(self) -> str:
        """Return the name by which the database knows it."""
        return self._folder.name

    def is_outside(self, role: str) -> bool:
        """Return True if another database holds LightRAG's storage of a role."""
        return not self.storages[role].startswith("PG")

    def release(self) -> None:
        """Give it back; the last one closes it."""
        self._users -= 1
        if self._users == 0:
            self._open.pop(self._place, None)

    async def all(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""
        async with translating():
            return await self.database.all(sql, self.number, *values)

    async def one(self, sql: str, *values: Any) -> Any:
        """Return the first row of a query, or None."""
        async with translating():
            return await self.database.one(sql, self.number, *values)

    async def value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row of a query, or None."""
        async with translating():
            return await self.database.value(sql, self.number, *values)

    async def execute(self, sql: str, *values: Any) -> None:
        """Run a statement."""
        await self.value(sql, *values)

    async def many(self, sql: str, rows: "list[tuple[Any, ...]]") -> None:
        """Run a statement for each of the rows, with the store's number ahead. Only within a transaction."""
        if rows:
            async with translating():
                await self.database.many(sql, [(self.number, *row) for row in rows])

    async def publish(self) -> None:
        """Have what was just committed written to the other databases, or leave it to whoever writes next."""
        if self.journal.targets:
            try:
                async with asyncio.timeout(PUBLISH_SECONDS):
                    await self.journal.drain(self.number, self.key)
            except (LedgerError, TimeoutError) as error:
                reason = error.reason if isinstance(error, LedgerError) else "that takes long"
                logger.warning("A change of workspace %s waits to be written: %s", self.workspace, reason)

    async def catch_up(self) -> None:
        """Have all that was committed written to the other databases, and compare.

        Raises `LedgerError`, also if the address of one of them is not set.
        """
        if any(map(self.is_outside, self.storages)):
            await self.journal.check(self.number, self.key)

    async def catch_up_graph(self) -> None:
        """Do as `catch_up` does for the graph alone, and soon. Raises `LedgerError`."""
        if self.is_outside("graph"):
            try:
                async with asyncio.timeout(GRAPH_SECONDS):
                    await self.journal.check(self.number, self.key, "graph")
            except TimeoutError:
                waits = "changes of the graph are still being written"
                raise LedgerError(waits, f"is busy: {waits}") from None

    async def sizes_of_graph(self) -> tuple[int, int]:
        """Count the entities and the relations."""
        try:
            if graph := self.graphs.get(GRAPH):
                return await graph.sizes()
        except LedgerError:
            pass  # the other database is out of reach, but what is in it is known here
        return await self.sizes_by_mentions()

    async def sizes_by_mentions(self) -> tuple[int, int]:
        """Count the entities and the relations that passages name."""
        found = dict(await self.all(_NAMED))
        return found.get("entity", 0), found.get("relation", 0)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Commit everything in the block or nothing, and change the state of the store. A store has one at a time.

        What is noted for other databases is written there afterwards.
        """
        noted = self.journal.noted
        async with translating(), self.database.transaction():
            await self.touch()
            yield
        if self.journal.noted != noted:
            await self.publish()
        self._writes += 1
        if self._writes >= _WRITES and (self._indexing is None or self._indexing.done()):
            self._indexing = asyncio.create_task(self._index())

    async def touch(self) -> None:
        """Lock the store until the transaction ends, and change its state. Raises `StoreRemoved`."""
        if await self.database.value(_TOUCH, self.number) is None:
            raise StoreRemoved

    async def close(self) -> None:
        """Have the workspace indexed as it is now."""
        if self._indexing is not None:
            await asyncio.wait([self._indexing])
        if self._writes:
            await self._index()

    async def _index(self) -> None:
        """Searches find all without an index too, only later."""
        self._writes = 0
        try:
            await self.make_indexes()
        except LedgerError as error:
            logger.warning("Workspace %s has no index of its vectors: %s", self.workspace, error.reason)

    @asynccontextmanager
    async def note(self) -> AsyncIterator[None]:
        """Run a transaction beside the content: the state stays."""
        async with translating(), self.database.transaction():
            yield

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """Have the queries in the block see one state, whatever others write."""
        async with translating(), self.database.transaction(snapshot=True):
            yield


def since(row: Mapping[str, Any] | None) -> Since:
    """Read a row of `NOW`. Without a row, the workspace has no store."""
    if row is None:
        return Since("", None, "")
    return Since(f"{row['id']}-{row['state']}", row["embedding_model"], str(row["id"]))


def place_of(database: PostgresDatabase, folder: Path, generation: str) -> str:
    """Return the key of an open store: a process may have several databases, and a name one store after another."""
    return f"{id(database)}/{folder}/{generation}"


async def _make(database: PostgresDatabase, workspace: str, new: NewStores) -> None:
    """Make a store, unless another process does so first."""
    async with database.transaction():
        key = await database.value(_MAKE, workspace, f"w{uuid.uuid4().hex[:16]}", json.dumps(dict(new.storages)))
        if key is not None and new.make is not None:
            await new.make(database, key)
