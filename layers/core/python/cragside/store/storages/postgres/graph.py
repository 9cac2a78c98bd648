"""LightRAG's graph in tables of PostgreSQL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from typing_extensions import override

from cragside.store.ledger.changes import Row
from cragside.store.storages.interface import Properties, Strong, ordered
from cragside.store.storages.postgres.ledger_graph import LedgerGraph
from cragside.store.storages.postgres.lightrag_postgres import PGTableGraphStorage
from cragside.store.storages.postgres.seam import SharedDatabase

_OWN = "workspace = $1 AND namespace = $2"
# Lower case of all alphabets, whatever the database's own locale knows.
_LOWER = 'lower({} COLLATE "und-x-icu")'
_WEIGHT = "(properties->>'weight')::float8"
# The strongest edges of a node, from either side.
_STRONGEST = f"""
SELECT other, properties, forward FROM (
    SELECT tgt_id AS other, properties, true AS forward FROM lightrag_graph_edges WHERE {_OWN} AND src_id = $3
    UNION ALL
    SELECT src_id, properties, false FROM lightrag_graph_edges WHERE {_OWN} AND tgt_id = $3 AND src_id <> $3) AS near
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
_KINDS = f"SELECT {_KIND} AS kind, count(*) FROM lightrag_graph_nodes WHERE {_OWN} GROUP BY 1"  # noqa: S608 (our own)


@final
@dataclass
class PostgresGraph(PGTableGraphStorage, LedgerGraph):
    """LightRAG's two tables. Each edge is stored once."""

    @override
    async def initialize(self) -> None:
        await LedgerGraph.initialize(self)
        self.db = SharedDatabase(self._store.database)

    @override
    async def finalize(self) -> None:
        await LedgerGraph.finalize(self)

    @override
    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        if self.edges_per_node is None:
            return await super().get_nodes_edges_batch(node_ids)  # type: ignore[no-any-return]
        rows = await self._rows(_EDGES_OF, node_ids, self.edges_per_node)
        found: dict[str, list[tuple[str, str]]] = {node: [] for node in node_ids}
        for node, other in rows:
            found[node].append((node, other))
        return found

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

    @override
    async def named(self, name: str) -> tuple[str, Properties] | None:
        if exact := await self.nodes([name]):
            return name, exact[name]
        rows = await self._rows(_SAME_NAME, name, 1)
        return (rows[0][0], self._json_loads(rows[0][1])) if rows else None

    @override
    async def containing(self, text: str, limit: int, kind: str = "") -> list[str]:
        rows = await self._rows(_CONTAINING, text, limit, kind)
        return [row[0] for row in rows]

    @override
    async def kinds(self) -> dict[str, int]:
        return dict(await self._rows(_KINDS))

    @override
    async def among(self, names: Sequence[str], limit: int) -> list[tuple[str, str, Properties]]:
        rows = await self._rows(_AMONG, list(names), limit)
        return [(source, target, self._json_loads(properties)) for source, target, properties in rows]

    @override
    async def strongest(self, name: str, limit: int) -> list[Strong]:
        rows = await self._rows(_STRONGEST, name, limit)
        return [Strong(other, self._json_loads(properties), forward) for other, properties, forward in rows]

    async def write(self, nodes: Mapping[str, Row | None], edges: Mapping[tuple[str, str], Row | None]) -> None:
        """Write nodes and edges as they are to be, and remove those that are None."""
        await self.remove_edges([ends for ends, row in edges.items() if not row])
        await self.remove_nodes([name for name, row in nodes.items() if not row])
        await self.upsert_nodes_batch([(name, {"entity_id": name, **row}) for name, row in nodes.items() if row])
        await self.upsert_edges_batch([(*ordered(*ends), dict(row)) for ends, row in edges.items() if row])

    async def sizes(self) -> tuple[int, int]:
        """Count the nodes and the edges."""
        counted = "(SELECT count(*) FROM lightrag_graph_{} WHERE workspace = $1 AND namespace = $2)"
        rows = await self._rows(f"SELECT {counted.format('nodes')} AS nodes, {counted.format('edges')} AS edges")
        return int(rows[0][0]), int(rows[0][1])

    async def _rows(self, sql: str, *values: Any) -> list[Any]:
        found: list[Any] = [
            tuple(row.values()) for row in await self._fetch(sql, self.workspace, self.namespace, *values)
        ]
        return found
