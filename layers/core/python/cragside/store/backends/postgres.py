"""Workspaces in PostgreSQL, which several servers and workers share."""

import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.indexing import DocumentKey, Stored
from cragside.store.backends.interface import Backend, Storages
from cragside.store.exchange import Batches
from cragside.store.leases import GRAPH, Leases
from cragside.store.ledger import Ledger
from cragside.store.postgres.driver import PostgresDriver
from cragside.store.postgres.journal import Journal, ShareLost, Target
from cragside.store.postgres.lightrag_rows import values_of
from cragside.store.postgres.schema import AGE_STORAGE, make_graph
from cragside.store.postgres.store import NewStores, place_of
from cragside.store.postgres.stores import (
    abandoned_in,
    is_in,
    names_in,
    remove,
    remove_abandoned,
    stored_in,
)

if TYPE_CHECKING:
    from cragside.store.storages import GraphStorage, ValueStorage, VectorStorage

NEO4J_STORAGE = "Neo4JStorage"
_LEASE_SECONDS = 30.0
DEFAULTS = {
    "kv": "PGKVStorage",
    "vector": "PGVectorStorage",
    "graph": "PGTableGraphStorage",
    "doc_status": "PGDocStatusStorage",
}


class PostgresBackend(Backend):
    """Ledger and storages of all workspaces share a database and its transactions. A folder is a name alone."""

    def __init__(
        self,
        database: PostgresDatabase,
        names: Mapping[str, str] = DEFAULTS,
        outside: Mapping[str, Target[Any]] | None = None,
    ) -> None:
        """`names` are the classes of LightRAG's storages by their roles, `outside` the databases of some of them."""
        self._database = database
        self._names = names
        self._journal = Journal(database, outside or {})

    @override
    def folder_of(self, home: Path, workspace: str) -> Path:
        return home / workspace

    @override
    def place_of(self, folder: Path, generation: str) -> str:
        return place_of(self._database, folder, generation)

    @override
    def files_of(self, folder: Path) -> Path:
        return Path(tempfile.gettempdir())

    @override
    async def names(self, home: Path) -> list[str]:
        # A leading dot: a store that is being built.
        return [name for name in await names_in(self._database) if not name.startswith(".")]

    @override
    async def has_store(self, folder: Path) -> bool:
        return await is_in(self._database, folder.name)

    @override
    async def open_ledger(
        self, folder: Path, workspace: str, *, search_text: Callable[[str], str], read_only: bool = False
    ) -> Ledger:
        make = make_graph if self._names["graph"] == AGE_STORAGE else None
        new = None if read_only else NewStores(self._names, make)
        store = await PostgresDriver.acquire(folder, self._database, self._journal, new)
        return Ledger(store, workspace, search_text)

    @override
    def storages(self) -> Storages:
        names = self._names
        return Storages(_values(names["kv"]), _vectors(names["vector"]), _graph(names["graph"]), names)

    @override
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        stored = await stored_in(self._database, folder.name, keys)
        if not stored.waiting:
            return stored
        # What is on its way counts only if it does not arrive.
        async with self._store(folder) as store:
            await store.publish()
        return await stored_in(self._database, folder.name, keys)

    @override
    async def remove(self, folder: Path) -> None:
        await remove(self._database, folder.name)
        await self._journal.drop_removed()

    @override
    async def take_away(self, folder: Path) -> None:
        await self.remove(folder)

    @override
    async def sweep(self, home: Path) -> None:
        """Remove stores that killed processes were building, and finish what other databases still have to do."""
        for name in await abandoned_in(self._database):
            await remove_abandoned(self._database, name)
        await self._journal.sweep()

    @override
    async def disagreement(self, folder: Path) -> str:
        async with self._store(folder) as store:
            try:
                await store.catch_up()
            except ShareLost as error:
                return error.reason
            if not (store.is_outside("graph") or store.is_outside("vector")):
                return ""
            from cragside.store.outside.shares import disagreement

            return await disagreement(store)

    @override
    async def dump(self, folder: Path) -> Batches:
        """See the base. While other databases are read, nobody writes to the graph."""
        from cragside.store.outside.shares import with_shares
        from cragside.store.postgres.exchange import dump

        async with self._store(folder) as store, _graph_at_rest(store):
            values = values_of(store) if store.is_outside("kv") else None
            async for batch in with_shares(dump(store, values), store):
                yield batch

    @override
    async def load(self, folder: Path, batches: Batches, *, search_text: Callable[[str], str]) -> None:
        from cragside.store.outside.shares import without_shares
        from cragside.store.postgres.exchange import load

        async with self._store(folder) as store:
            await load(store, without_shares(batches, store), search_text)

    @asynccontextmanager
    async def _store(self, folder: Path) -> AsyncIterator[PostgresDriver]:
        store = await PostgresDriver.acquire(folder, self._database, self._journal)
        try:
            yield store
        finally:
            store.release()

    async def finish(self) -> None:
        """End the writing to other databases; see `Journal.finish`. The connections stay."""
        await self._journal.finish()

    async def close(self) -> None:
        """Finish, and close the connections."""
        await self._journal.close()
        await self._database.close()


def _values(name: str) -> "type[ValueStorage]":
    if name == DEFAULTS["kv"]:
        from cragside.store.postgres.lightrag_tables import PostgresValues

        return PostgresValues
    from cragside.store.outside.values import OutsideValues

    return OutsideValues


def _vectors(name: str) -> "type[VectorStorage]":
    if name == DEFAULTS["vector"]:
        from cragside.store.postgres.vectors import PostgresVectors

        return PostgresVectors
    from cragside.store.outside.vectors import OutsideVectors

    return OutsideVectors


def _graph(name: str) -> "type[GraphStorage]":
    if name == DEFAULTS["graph"]:
        from cragside.store.postgres.graph import PostgresGraph

        return PostgresGraph
    if name == AGE_STORAGE:
        from cragside.store.postgres.age_graph import AgeGraph

        return AgeGraph
    from cragside.store.outside.graph import OutsideGraph

    return OutsideGraph


@asynccontextmanager
async def _graph_at_rest(store: PostgresDriver) -> AsyncIterator[None]:
    """Nobody writes to what other databases have of a store. Raises `LedgerError`."""
    if not any(store.is_outside(role) for role in ("kv", "vector", "graph")):
        yield
        return
    leases = Leases(store, _LEASE_SECONDS)
    try:
        async with leases.held(GRAPH):
            await store.catch_up()
            yield
    finally:
        await leases.close()
