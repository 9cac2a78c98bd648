"""LightRAG's graph in a database outside of PostgreSQL, over a small driver for each product."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, final

from typing_extensions import override

from cragside.domain.names import owner_of
from cragside.store.driver import Row
from cragside.store.outside.absence import left_out
from cragside.store.postgres.graph import ALL, LedgerGraph
from cragside.store.postgres.journal import Connections, Target
from cragside.store.postgres.store import PostgresStore
from cragside.store.storages import Expansion, ordered

D = TypeVar("D", bound=Connections)

# A question waits no longer for the graph: words and vectors still answer it.
PATIENCE_SECONDS = 3.0
# What the journal calls the graph.
ROLE = "graph"


class GraphTarget(Target[D]):
    """The graphs of all stores. A change has rows of `nodes` and `edges`, with None for the properties of what goes.

    A product writes a change and its fence in one transaction: see `Target`. All methods may raise `LedgerError`.
    `queries` has those of `LedgerGraph`, with `{label}` for the key of a store and `$name` for a value, and three more:

    - `surroundings`, all that a question reads, in rows of one form: a kind, a name, another name, a place in the
      order, a degree, and properties. `node`: of `asked`, with its degree. `near`: as `edges_of` says, with the degree
      of the other end. `edge`: as `edges` says.
    - `page_of_nodes`, the next `most` nodes with names after `after`, in order: name and properties.
    - `edges_from` `names` to names that are not before them: both ends and properties.
    """

    queries: ClassVar[Mapping[str, str]]
    # The reason that is told when it takes too long.
    late: ClassVar[str]

    @classmethod
    def query(cls, name: str, key: str) -> str:
        """Return a query of a store's graph."""
        return cls.queries[name].replace("{label}", key)

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
            target.query("surroundings", self._store.key),
            asked=list(asked),
            names=list(names),
            pairs=[list(pair) for pair in pairs],
            most=self.edges_per_node or ALL,
        )

    async def write(self, nodes: Mapping[str, Row | None], edges: Mapping[tuple[str, str], Row | None]) -> None:
        """Note the change in the journal, in the transaction that is under way. `Journal.drain` has it written."""
        ends = [[*ordered(*pair), dict(row) if row else None] for pair, row in edges.items()]
        rows = [[name, dict(row) if row else None] for name, row in nodes.items()]
        if rows or ends:
            await self._store.journal.note(self._store.number, ROLE, {"nodes": rows, "edges": ends})

    @override
    async def _ask(self, query: str, **values: Any) -> list[Any]:
        asked = [value for value in values.values() if isinstance(value, list)]
        if asked and not any(asked):
            return []
        target = target_of(self._store)
        return await target.rows_for(owner_of(self._store.workspace), target.query(query, self._store.key), **values)


def target_of(store: PostgresStore) -> GraphTarget[Any]:
    """Return the database that has the graphs of all stores. Raises `LedgerError` if its address is not set."""
    target: GraphTarget[Any] = store.journal.target(ROLE)
    return target
