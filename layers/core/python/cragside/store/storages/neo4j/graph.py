"""LightRAG's graph in Neo4j."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from typing_extensions import override

from cragside.domain.names import owner_of
from cragside.domain.outcome import leave_out
from cragside.store.ledger.changes import Row
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.interface import Expansion, Properties, Strong, ordered
from cragside.store.storages.neo4j.fence import FencedGraph
from cragside.store.storages.postgres.ledger_graph import LedgerGraph

logger = logging.getLogger("cragside")

_DEGREE = "COUNT { (node)-[:DIRECTED]-() }"
_NODES = "UNWIND $names AS name MATCH (node:`{label}` {{entity_id: name}})"
# LightRAG ignores the direction of an edge.
_EDGES = """UNWIND $pairs AS pair MATCH (:`{label}` {{entity_id: pair[0]}})-[edge:DIRECTED]-
    (:`{label}` {{entity_id: pair[1]}})
    WITH pair, head(collect(edge)) AS edge RETURN pair[0], pair[1], properties(edge)"""
# At most `most` edges of a node, from either side, always the same ones.
_EDGES_OF = (
    _NODES
    + """ CALL (node) {{ MATCH (node)-[:DIRECTED]-(end)
        WITH DISTINCT end.entity_id AS other, CASE WHEN end.entity_id >= node.entity_id THEN 1 ELSE 2 END AS side
        ORDER BY side, other LIMIT $most RETURN other, side }}
    RETURN name, other ORDER BY name, side, other"""
)
# All that a query reads, in one round trip: nodes with their degrees, edges from them with the degrees of their other
# ends, and edges by their ends.
_SURROUNDINGS = (
    "UNWIND $asked AS name MATCH (node:`{label}` {{entity_id: name}})"
    " RETURN 'node' AS kind, name, '' AS other, 0 AS side, COUNT {{ (node)-[:DIRECTED]-() }} AS degree,"
    " properties(node) AS told"
    " UNION ALL " + _NODES + """ CALL (node) {{ MATCH (node)-[edge:DIRECTED]-(end)
        WITH end, head(collect(edge)) AS edge, CASE WHEN end.entity_id >= node.entity_id THEN 1 ELSE 2 END AS side
        ORDER BY side, end.entity_id LIMIT $most RETURN end, edge, side }}
    RETURN 'near' AS kind, name, end.entity_id AS other, side, COUNT {{ (end)-[:DIRECTED]-() }} AS degree,
        properties(edge) AS told"""
    " UNION ALL "
    """UNWIND $pairs AS pair MATCH (:`{label}` {{entity_id: pair[0]}})-[edge:DIRECTED]-(:`{label}`
        {{entity_id: pair[1]}})
    WITH pair, head(collect(edge)) AS edge
    RETURN 'edge' AS kind, pair[0] AS name, pair[1] AS other, 0 AS side, 0 AS degree, properties(edge) AS told"""
)
_NAMED = f"""MATCH (node:`{{label}}`) WHERE {{condition}}
    RETURN node.entity_id, properties(node) ORDER BY {_DEGREE.replace("{", "{{").replace("}", "}}")} DESC,
    node.entity_id LIMIT $limit"""
_KIND = "coalesce(node.entity_type, '')"
_CONTAINING = f"toLower(node.entity_id) CONTAINS toLower($text) AND ($kind = '' OR {_KIND} = $kind)"
_KINDS = f"MATCH (node:`{{label}}`) RETURN {_KIND}, count(*)"
_AMONG = """MATCH (source:`{label}`)-[edge:DIRECTED]-(target:`{label}`)
    WHERE source.entity_id IN $names AND target.entity_id IN $names AND source.entity_id <= target.entity_id
    WITH DISTINCT source.entity_id AS source, target.entity_id AS target, edge
    RETURN source, target, properties(edge) ORDER BY coalesce(edge.weight, 0) DESC, source, target LIMIT $limit"""
_STRONGEST = """MATCH (:`{label}` {{entity_id: $name}})-[edge:DIRECTED]-(end)
    RETURN end.entity_id, properties(edge) ORDER BY coalesce(edge.weight, 0) DESC, end.entity_id LIMIT $limit"""
# A question waits no longer for the graph: words and vectors still answer it.
PATIENCE_SECONDS = 3.0
# More than any node has.
_ALL = 2**31
# What the journal calls the graph.
ROLE = "graph"


@final
@dataclass
class Neo4jGraph(LedgerGraph):
    """Nodes and edges with LightRAG's labels and properties, so that LightRAG's own server reads the same graph."""

    @override
    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {node: [] for node in node_ids}
        for node, other in await self._rows(_EDGES_OF, names=list(found), most=self.edges_per_node or _ALL):
            found[node].append((node, other))
        return found

    @override
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        rows = await self._rows(_NODES + " RETURN name, properties(node)", names=list(set(names)))
        return dict(rows)

    @override
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        rows = await self._rows(_EDGES, pairs=[list(pair) for pair in set(pairs)])
        return {(source, target): properties for source, target, properties in rows}

    @override
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        degree = _DEGREE.replace("{", "{{").replace("}", "}}")
        rows = await self._rows(f"{_NODES} RETURN name, {degree}", names=list(set(names)))
        return dict(rows)

    @override
    async def named(self, name: str) -> tuple[str, Properties] | None:
        if exact := await self.nodes([name]):
            return name, exact[name]
        rows = await self._named("toLower(node.entity_id) = toLower($text)", name, 1)
        return (rows[0][0], rows[0][1]) if rows else None

    @override
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        rows = await self._named(_CONTAINING, text, limit, kind)
        return [row[0] for row in rows]

    @override
    async def kinds(self) -> dict[str, int]:
        return dict(await self._rows(_KINDS))

    @override
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        return [tuple(row) for row in await self._rows(_AMONG, names=list(names), limit=limit)]

    @override
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        rows = await self._rows(_STRONGEST, name=name, limit=limit)
        return [Strong(other, properties, forward=name <= other) for other, properties in rows]

    @override
    async def expand(self, names: Sequence[str], ends: Sequence[tuple[str, str]]) -> Expansion:
        """See the base. While Neo4j is out of reach nothing is there: vectors and words still find passages."""
        asked, pairs = {*names, *(name for pair in ends for name in pair)}, {ordered(*pair) for pair in ends}
        try:
            rows = await self._surroundings(asked, names, pairs)
        except (LedgerError, TimeoutError) as error:
            reason = error.reason if isinstance(error, LedgerError) else "Neo4j does not answer in time"
            logger.warning("Workspace %s is searched without its graph: %s", self._store.workspace, reason)
            leave_out("graph", f"{reason}. Passages were found without entities and relations.")
            rows = []
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
        if not asked:
            return []
        return await graph_of(self._store).rows_within(
            PATIENCE_SECONDS,
            owner_of(self._store.workspace),
            _SURROUNDINGS.format(label=self._store.key),
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
        return await graph_of(self._store).sizes(self._store.key)

    async def _named(self, condition: str, text: str, limit: int, kind: str = "") -> list[Any]:
        return await self._rows(_NAMED, {"condition": condition}, text=text, limit=limit, kind=kind)

    async def _rows(self, cypher: str, parts: Mapping[str, str] | None = None, **values: Any) -> list[Any]:
        asked = [value for value in values.values() if isinstance(value, list)]
        if asked and not any(asked):
            return []
        asking = cypher.format(label=self._store.key, **(parts or {}))
        return await graph_of(self._store).rows_for(owner_of(self._store.workspace), asking, **values)


def graph_of(store: PostgresStore) -> FencedGraph:
    """Neo4j, which has the graphs of all stores."""
    graph = store.journal.target(ROLE)
    if not isinstance(graph, FencedGraph):
        raise TypeError("The graph of this store is not in Neo4j.")
    return graph
