"""LightRAG's graph in a database outside of PostgreSQL, over a small driver for each product."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar, final

from typing_extensions import override

from cragside.domain.names import owner_of
from cragside.store.ledger.changes import Row
from cragside.store.ledger.postgres.journal import Connections, Target
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.outside.absence import left_out
from cragside.store.storages.interface import Expansion, Properties, Strong, ordered
from cragside.store.storages.postgres.ledger_graph import LedgerGraph

D = TypeVar("D", bound=Connections)

# A question waits no longer for the graph: words and vectors still answer it.
PATIENCE_SECONDS = 3.0
# More than any node has.
_ALL = 2**31
# What the journal calls the graph.
ROLE = "graph"


class GraphQueries(NamedTuple):
    """The queries of a product. `{label}` stands for the key of a store, `$name` for a value.

    LightRAG ignores the direction of an edge: it is found by its ends in any order, and once. "The heaviest" have the
    highest weight, then the alphabetically first ends. "The best" nodes have the most edges, then the first names.
    """

    # Of `$names` that are there: name and properties, and name and number of edges.
    nodes: str
    degrees: str
    # Of `$pairs` that are there: both ends as they were asked for, and properties.
    edges: str
    # At most `$most` edges of each of `$names`, always the same ones: name and other end.
    edges_of: str
    # All that a question reads, in rows of one form: a kind, a name, another name, a place in the order, a degree, and
    # properties. `node`: of `$asked`, with its degree. `near`: as `edges_of`, with the degree of the other end. `edge`:
    # as `edges`.
    surroundings: str
    # The `$limit` best nodes: name and properties. `$text` is the name in any case, or part of it; `$kind` may be "".
    same_name: str
    containing: str
    # The type of nodes, or "", and how many there are.
    kinds: str
    # The `$limit` heaviest edges among `$names` (ends and properties) and of `$name` (other end and properties).
    among: str
    strongest: str
    # The numbers of nodes and edges.
    sizes: str
    # The next `$most` nodes with names after `$after`, in order: name and properties. Then the edges from each of
    # `$names` to names that are not before it: both ends and properties.
    page_of_nodes: str
    edges_from: str


class GraphTarget(Target[D]):
    """The graphs of all stores. A change has rows of `nodes` and `edges`, with None for the properties of what goes.

    A product writes a change and its fence in one transaction: see `Target`. All methods may raise `LedgerError`.
    """

    queries: ClassVar[GraphQueries]
    # The reason that is told when it takes too long.
    late: ClassVar[str]

    @abstractmethod
    async def rows(self, query: str, **values: Any) -> list[Any]:
        """Return the rows of a query that only reads."""

    @abstractmethod
    async def rows_for(self, workspace: str, query: str, **values: Any) -> list[Any]:
        """As `rows`, for a workspace, which has a share of the connections alone."""

    @abstractmethod
    async def rows_within(self, seconds: float, workspace: str, query: str, **values: Any) -> list[Any]:
        """As `rows_for`, but raises `TimeoutError` when the database has had the query for so long."""


@final
@dataclass
class OutsideGraph(LedgerGraph):
    """Nodes and edges with LightRAG's labels and properties, so that LightRAG's own server reads the same graph."""

    @override
    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {node: [] for node in node_ids}
        for node, other in await self._rows("edges_of", names=list(found), most=self.edges_per_node or _ALL):
            found[node].append((node, other))
        return found

    @override
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        return dict(await self._rows("nodes", names=list(set(names))))

    @override
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        rows = await self._rows("edges", pairs=[list(pair) for pair in set(pairs)])
        return {(source, target): properties for source, target, properties in rows}

    @override
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        return dict(await self._rows("degrees", names=list(set(names))))

    @override
    async def named(self, name: str) -> tuple[str, Properties] | None:
        if exact := await self.nodes([name]):
            return name, exact[name]
        rows = await self._rows("same_name", text=name, limit=1)
        return (rows[0][0], rows[0][1]) if rows else None

    @override
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        return [row[0] for row in await self._rows("containing", text=text, limit=limit, kind=kind)]

    @override
    async def kinds(self) -> dict[str, int]:
        return dict(await self._rows("kinds"))

    @override
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        return [tuple(row) for row in await self._rows("among", names=list(names), limit=limit)]

    @override
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        rows = await self._rows("strongest", name=name, limit=limit)
        return [Strong(other, properties, forward=name <= other) for other, properties in rows]

    @override
    async def expand(self, names: Sequence[str], ends: Sequence[tuple[str, str]]) -> Expansion:
        """See the base. While the other database is out of reach nothing is there: vectors and words find passages."""
        asked, pairs = {*names, *(name for pair in ends for name in pair)}, {ordered(*pair) for pair in ends}
        rows: Sequence[Sequence[Any]] = []
        if asked:
            with left_out("graph", "graph", self._store, ROLE):
                rows = await self._surroundings(asked, names, pairs)
        found = Expansion(asked, {}, {name: [] for name in names}, dict.fromkeys(asked, 0), pairs, {})
        for kind, name, other, _, degree, properties in sorted(rows, key=lambda row: (row[0], row[1], row[3], row[2])):
            if kind == "node":
                found.nodes[name] = properties
                found.degrees[name] = degree
                continue
            found.edges[ordered(name, other)] = properties
            if kind == "near":
                found.near[name].append((name, other))
                found.pairs.add(ordered(name, other))
                found.degrees[other] = degree
        return found

    async def _surroundings(
        self, asked: set[str], names: Sequence[str], pairs: set[tuple[str, str]]
    ) -> Sequence[Sequence[Any]]:
        target = target_of(self._store)
        return await target.rows_within(
            PATIENCE_SECONDS,
            owner_of(self._store.workspace),
            target.queries.surroundings.replace("{label}", self._store.key),
            asked=list(asked),
            names=list(names),
            pairs=[list(pair) for pair in pairs],
            most=self.edges_per_node or _ALL,
        )

    async def write(self, nodes: Mapping[str, Row | None], edges: Mapping[tuple[str, str], Row | None]) -> None:
        """Note the change in the journal, in the transaction that is under way. `Journal.drain` has it written."""
        ends = [[*ordered(*pair), dict(row) if row else None] for pair, row in edges.items()]
        rows = [[name, dict(row) if row else None] for name, row in nodes.items()]
        if rows or ends:
            await self._store.journal.note(self._store.number, ROLE, {"nodes": rows, "edges": ends})

    async def sizes(self) -> tuple[int, int]:
        """Count the nodes and the edges."""
        return await sizes_of(self._store)

    async def _rows(self, query: str, **values: Any) -> list[Any]:
        asked = [value for value in values.values() if isinstance(value, list)]
        if asked and not any(asked):
            return []
        target = target_of(self._store)
        text = getattr(target.queries, query).replace("{label}", self._store.key)
        return await target.rows_for(owner_of(self._store.workspace), text, **values)


def target_of(store: PostgresStore) -> GraphTarget[Any]:
    """Return the database that has the graphs of all stores. Raises `LedgerError` if its address is not set."""
    target: GraphTarget[Any] = store.journal.target(ROLE)
    return target


async def sizes_of(store: PostgresStore) -> tuple[int, int]:
    """Count the nodes and the edges of a store's graph. Raises `LedgerError`."""
    target = target_of(store)
    ((nodes, edges),) = await target.rows(target.queries.sizes.replace("{label}", store.key))
    return nodes, edges
