"""The graph of a store whose ledger is in PostgreSQL, wherever the graph itself is."""

from copy import copy
from dataclasses import dataclass
from typing import Self

from typing_extensions import override

from cragside.store.ledger.postgres.open_storages import GRAPH
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.interface import GraphStorage


@dataclass
class LedgerGraph(GraphStorage):
    """Gives the ledger the graph to write to, from `initialize` to `finalize`."""

    edges_per_node: int | None = None

    @override
    async def initialize(self) -> None:
        self._store = PostgresStore.of_storage(self.global_config)
        self.workspace = self._store.key
        self._store.graphs.add(GRAPH, self)

    @override
    async def finalize(self) -> None:
        self._store.graphs.remove(GRAPH, self)
        self._store.release()

    @override
    def bounded(self, edges_per_node: int) -> Self:
        view = copy(self)
        view.edges_per_node = edges_per_node
        return view

    @override
    async def neighbours(self, name: str, limit: int) -> list[tuple[str, float | None]]:
        return [(each.other, each.value.get("weight")) for each in await self.strongest(name, limit)]
