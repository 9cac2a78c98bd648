"""The graph of a store whose ledger is in PostgreSQL, wherever the graph itself is."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from cragside.store.ledger.postgres.open_storages import GRAPH
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.interface import GraphStorage, Properties, Strong

# More than any node has.
ALL = 2**31
# The queries whose last column has properties.
WITH_PROPERTIES = {"nodes", "edges", "same_name", "containing", "among", "strongest"}


@dataclass
class LedgerGraph(GraphStorage):
    """Gives the ledger the graph to write to, from `initialize` to `finalize`, and reads it by ten queries.

    A database has each query in its own language, with these values in this order. The direction of an edge does not
    count: it is found by its ends in any order, and once. The heaviest edges have the highest weight, then the
    alphabetically first ends. The best nodes have the most edges, then the alphabetically first names.

    - `nodes` of `names`: name and properties. `degrees` of `names`: name and number of edges. Names that are not there
      are left out.
    - `edges` between `pairs`: both ends as they were asked for, and properties.
    - `edges_of` `names`, at most `most` of each, always the same ones: name and other end.
    - `same_name` as `text` in any case, the `limit` best, and `containing` `text`, the `limit` best of a `kind`, which
      may be "": name and properties.
    - `kinds` of nodes, "" among them: kind and number of nodes.
    - `among` `names`, the `limit` heaviest edges: both ends and properties.
    - `strongest`, the `limit` heaviest edges of `name`: other end and properties.
    - `sizes`: the number of nodes and that of edges, in one row.
    """

    @abstractmethod
    async def _ask(self, query: str, **values: Any) -> list[Any]:
        """Return the rows of a query. Properties are dictionaries."""

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
    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {node: [] for node in node_ids}
        for node, other in await self._ask("edges_of", names=list(found), most=self.edges_per_node or ALL):
            found[node].append((node, other))
        return found

    @override
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        return dict(await self._ask("nodes", names=list(set(names))))

    @override
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        rows = await self._ask("edges", pairs=[list(pair) for pair in set(pairs)])
        return {(source, target): properties for source, target, properties in rows}

    @override
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        return dict(await self._ask("degrees", names=list(set(names))))

    @override
    async def named(self, name: str) -> tuple[str, Properties] | None:
        if exact := await self.nodes([name]):
            return name, exact[name]
        rows = await self._ask("same_name", text=name, limit=1)
        return (rows[0][0], rows[0][1]) if rows else None

    @override
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        return [row[0] for row in await self._ask("containing", text=text, limit=limit, kind=kind)]

    @override
    async def kinds(self) -> dict[str, int]:
        return dict(await self._ask("kinds"))

    @override
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        return [tuple(row) for row in await self._ask("among", names=list(names), limit=limit)]

    @override
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        rows = await self._ask("strongest", name=name, limit=limit)
        return [Strong(other, properties, forward=name <= other) for other, properties in rows]

    @override
    async def neighbours(self, name: str, limit: int) -> list[tuple[str, float | None]]:
        return [(each.other, each.value.get("weight")) for each in await self.strongest(name, limit)]

    async def sizes(self) -> tuple[int, int]:
        """Count the nodes and the edges."""
        ((nodes, edges),) = await self._ask("sizes")
        return nodes, edges
