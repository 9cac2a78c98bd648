"""LightRAG's graph in tables of PostgreSQL, and what every graph beside a ledger in PostgreSQL shares."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import orjson
from typing_extensions import override

from cragside.store.driver import Row
from cragside.store.postgres.lightrag_tables import PGTableGraphStorage, SharedDatabase
from cragside.store.postgres.store import GRAPH, PostgresStore
from cragside.store.storages import GraphStorage, Properties, Strong, ordered

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


_OWN = "workspace = $1 AND namespace = $2"
# Lower case of all alphabets, whatever the database's own locale knows.
_LOWER = 'lower({} COLLATE "und-x-icu")'
_WEIGHT = "(properties->>'weight')::float8"
# The strongest edges of a node, from either side.
_STRONGEST = f"""
SELECT other, properties FROM (
    SELECT tgt_id AS other, properties FROM lightrag_graph_edges WHERE {_OWN} AND src_id = $3
    UNION ALL
    SELECT src_id, properties FROM lightrag_graph_edges WHERE {_OWN} AND tgt_id = $3 AND src_id <> $3) AS near
ORDER BY {_WEIGHT} DESC NULLS LAST, other COLLATE "C" LIMIT $4
"""  # noqa: S608 (our own text)
_AMONG = f"""
SELECT src_id, tgt_id, properties FROM lightrag_graph_edges WHERE {_OWN} AND src_id = ANY($3) AND tgt_id = ANY($3)
ORDER BY {_WEIGHT} DESC NULLS LAST, src_id COLLATE "C", tgt_id COLLATE "C" LIMIT $4
"""  # noqa: S608 (our own text)
# At most `most` edges of a node, from either side, always the same ones.
EDGES_OF = """(
    SELECT other, side FROM (
        (SELECT tgt_id AS other, 1 AS side FROM lightrag_graph_edges WHERE {own} AND src_id = {node}
            ORDER BY tgt_id COLLATE "C" LIMIT {most})
        UNION ALL
        (SELECT src_id, 2 FROM lightrag_graph_edges WHERE {own} AND tgt_id = {node} AND src_id <> {node}
            ORDER BY src_id COLLATE "C" LIMIT {most})) AS both_sides
    ORDER BY side, other COLLATE "C" LIMIT {most})"""
_EDGES_OF = f"""SELECT node.id, near.other FROM unnest($3::text[]) AS node (id)
    CROSS JOIN LATERAL {EDGES_OF.format(own=_OWN, node="node.id", most="$4")} AS near
    ORDER BY node.id, side, other COLLATE "C\""""  # noqa: S608 (our own text)
_DEGREE = f"""(SELECT count(*) FROM lightrag_graph_edges WHERE {_OWN} AND src_id = node.id)
    + (SELECT count(*) FROM lightrag_graph_edges WHERE {_OWN} AND tgt_id = node.id)"""  # noqa: S608 (our own text)
_NAMES = f"""SELECT id, properties FROM lightrag_graph_nodes AS node WHERE {_OWN} AND {{}}
    ORDER BY {_DEGREE} DESC, id COLLATE "C" LIMIT $4"""  # noqa: S608 (our own text)
_SAME_NAME = _NAMES.format(f"{_LOWER.format('id')} = {_LOWER.format('$3::text')}")
_KIND = "coalesce(properties->>'entity_type', '')"
_CONTAINING = _NAMES.format(
    f"strpos({_LOWER.format('id')}, {_LOWER.format('$3::text')}) > 0 AND ($5::text = '' OR {_KIND} = $5)"
)
_COUNT = f"(SELECT count(*) FROM lightrag_graph_{{}} WHERE {_OWN})"  # noqa: S608 (our own text)
_QUERIES = {
    "edges_of": _EDGES_OF,
    "same_name": _SAME_NAME,
    "containing": _CONTAINING,
    "kinds": f"SELECT {_KIND} AS kind, count(*) FROM lightrag_graph_nodes WHERE {_OWN} GROUP BY 1",  # noqa: S608
    "among": _AMONG,
    "strongest": _STRONGEST,
    "sizes": f"SELECT {_COUNT.format('nodes')} AS nodes, {_COUNT.format('edges')} AS edges",
}


@final
@dataclass
class PostgresGraph(PGTableGraphStorage, LedgerGraph):
    """LightRAG's two tables. Each edge is stored once. LightRAG's own methods read nodes, edges and degrees."""

    @override
    async def initialize(self) -> None:
        await LedgerGraph.initialize(self)
        self.db = SharedDatabase(self._store.database)

    @override
    async def finalize(self) -> None:
        await LedgerGraph.finalize(self)

    get_nodes_edges_batch = LedgerGraph.get_nodes_edges_batch

    @override
    async def nodes(self, names: Iterable[str]) -> dict[str, Properties]:
        return await self.get_nodes_batch(list(names))

    @override
    async def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Properties]:
        return await self.get_edges_batch([{"src": source, "tgt": target} for source, target in pairs])

    @override
    async def degrees(self, names: Iterable[str]) -> dict[str, int]:
        names = list(names)
        known, degrees = await self.nodes(names), await self.node_degrees_batch(names)
        return {name: degrees.get(name, 0) for name in known}

    @staticmethod
    @override
    def _json_loads(value: Any) -> dict[str, Any]:
        return orjson.loads(value) if isinstance(value, str) else dict(value or {})

    async def write(self, nodes: Mapping[str, Row | None], edges: Mapping[tuple[str, str], Row | None]) -> None:
        """Write nodes and edges as they are to be, and remove those that are None."""
        await self.remove_edges([ends for ends, row in edges.items() if not row])
        await self.remove_nodes([name for name, row in nodes.items() if not row])
        await self.upsert_nodes_batch([(name, {"entity_id": name, **row}) for name, row in nodes.items() if row])
        await self.upsert_edges_batch([(*ordered(*ends), dict(row)) for ends, row in edges.items() if row])

    @override
    async def _ask(self, query: str, **values: Any) -> list[Any]:
        found = await self._fetch(_QUERIES[query], self.workspace, self.namespace, *values.values())
        rows: list[Any] = [tuple(row.values()) for row in found]
        return [(*row[:-1], self._json_loads(row[-1])) for row in rows] if query in WITH_PROPERTIES else rows
