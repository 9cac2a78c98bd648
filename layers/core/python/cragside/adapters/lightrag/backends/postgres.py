"""Workspaces in PostgreSQL, which several servers and workers share."""

import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from typing_extensions import override

from cragside.adapters.lightrag.backends.interface import Backend, Storages
from cragside.adapters.lightrag.ledger.exchange import Batches
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.postgres.age import AGE_STORAGE, make_graph
from cragside.adapters.postgres.database import PostgresDatabase
from cragside.domain.indexing import DocumentKey, Stored

DEFAULTS = {
    "kv": "PGKVStorage",
    "vector": "PGVectorStorage",
    "graph": "PGTableGraphStorage",
    "doc_status": "PGDocStatusStorage",
}


class PostgresBackend(Backend):
    """Ledger and storages of all workspaces share a database and its transactions. A folder is a name alone."""

    def __init__(self, database: PostgresDatabase, names: Mapping[str, str] = DEFAULTS) -> None:
        """`names` are the classes of LightRAG's storages by their roles."""
        self._database = database
        self._names = names

    @override
    def folder_of(self, home: Path, workspace: str) -> Path:
        return home / workspace

    @override
    def files_of(self, folder: Path) -> Path:
        return Path(tempfile.gettempdir())

    @override
    async def names(self, home: Path) -> list[str]:
        from cragside.adapters.lightrag.ledger.postgres.store import names_in

        # A leading dot: a store that is being built.
        return [name for name in await names_in(self._database) if not name.startswith(".")]

    @override
    async def has_store(self, folder: Path) -> bool:
        from cragside.adapters.lightrag.ledger.postgres.store import is_in

        return await is_in(self._database, folder.name)

    @override
    async def open_ledger(
        self, folder: Path, workspace: str, *, search_text: Callable[[str], str], read_only: bool = False
    ) -> Ledger:
        from cragside.adapters.lightrag.ledger.postgres.ledger import PostgresLedger
        from cragside.adapters.lightrag.ledger.postgres.store import NewStores, PostgresStore

        make = make_graph if self._names["graph"] == AGE_STORAGE else None
        store = await PostgresStore.acquire(folder, self._database, None if read_only else NewStores(self._names, make))
        return PostgresLedger(store, workspace, search_text)

    @override
    def storages(self) -> Storages:
        from cragside.adapters.lightrag.storages.postgres.age_graph import AgeGraph
        from cragside.adapters.lightrag.storages.postgres.graph import PostgresGraph
        from cragside.adapters.lightrag.storages.postgres.values import PostgresValues
        from cragside.adapters.lightrag.storages.postgres.vectors import PostgresVectors

        graph = AgeGraph if self._names["graph"] == AGE_STORAGE else PostgresGraph
        return Storages(PostgresValues, PostgresVectors, graph, self._names)

    @override
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        from cragside.adapters.lightrag.ledger.postgres.sizes import stored_in

        return await stored_in(self._database, folder.name, keys)

    @override
    async def remove(self, folder: Path) -> None:
        from cragside.adapters.lightrag.ledger.postgres.removal import remove

        await remove(self._database, folder.name)

    @override
    async def take_away(self, folder: Path) -> None:
        await self.remove(folder)

    @override
    async def sweep(self, home: Path) -> None:
        """A removal is one transaction."""

    @override
    def dump(self, folder: Path) -> Batches:
        from cragside.adapters.lightrag.storages.postgres.exchange import dump

        return dump(self._database, folder.name)

    @override
    async def load(self, folder: Path, workspace: str, batches: Batches, *, search_text: Callable[[str], str]) -> None:
        from cragside.adapters.lightrag.storages.postgres.exchange import load

        await load(self._database, folder.name, batches, search_text)

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()
