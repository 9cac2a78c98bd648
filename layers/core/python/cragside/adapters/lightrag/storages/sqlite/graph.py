"""LightRAG's graph storage on SQLite: nodes by name, undirected edges stored once with their ends in order."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, Self, final

import orjson
from lightrag.base import BaseGraphStorage
from lightrag.types import KnowledgeGraph, KnowledgeGraphEdge, KnowledgeGraphNode

from cragside.adapters.lightrag.ledger.sqlite.database import Database

_UPSERT_NODE = (
    "INSERT INTO node VALUES (?1, ?2, (SELECT count(*) FROM edge WHERE source = ?1 OR target = ?1))"
    " ON CONFLICT DO UPDATE SET value = json_patch(value, excluded.value)"
)
# Edges come after their nodes, and count themselves.
_PUT_NODE = "INSERT INTO node VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET value = excluded.value"
_RANKED = "SELECT id FROM node ORDER BY degree DESC, id LIMIT ?"
# The join looks each pair up in the index; for `(source, target) IN (...)` SQLite reads the whole table.
_EDGES = (
    "WITH wanted (s, t) AS (VALUES {}) SELECT source, target, value FROM wanted CROSS JOIN edge"
    " ON source = s AND target = t"
)


@final
@dataclass
class SqliteGraphStorage(BaseGraphStorage):
    """Each call is a transaction, so nothing waits for `index_done_callback`."""

    edges_per_node: int = -1

    def bounded(self, edges_per_node: int) -> Self:
        """A view for queries that sees at most so many edges of each node.

        LightRAG fetches, ranks and counts all edges of every node it finds; hubs have hundreds.
        """
        view = copy(self)
        view.edges_per_node = edges_per_node
        return view

    async def initialize(self) -> None:
        """Open the workspace's file."""
        self._db = Database.acquire(self.global_config["working_dir"])

    async def finalize(self) -> None:
        """Give the file back."""
        self._db.release()

    async def index_done_callback(self) -> None:
        """Nothing to do: every write is committed already."""

    async def has_node(self, node_id: str) -> bool:
        """True when the node is there."""
        return self._db.one("SELECT 1 FROM node WHERE id = ?", (node_id,)) is not None

    async def has_nodes_batch(self, node_ids: list[str]) -> set[str]:
        """Those of the nodes that are there."""
        return {row[0] for row in self._db.within("SELECT id FROM node WHERE id IN ({})", node_ids)}

    async def has_edge(self, source_node_id: str, target_node_id: str) -> bool:
        """True when the edge is there, in either direction."""
        return await self.get_edge(source_node_id, target_node_id) is not None

    async def node_degree(self, node_id: str) -> int:
        """How many edges touch the node; 0 for an unknown one."""
        return (await self.node_degrees_batch([node_id]))[node_id]

    async def node_degrees_batch(self, node_ids: list[str]) -> dict[str, int]:
        """The degree of each node."""
        found = dict(self._db.within("SELECT id, degree FROM node WHERE id IN ({})", node_ids))
        return {node: found.get(node, 0) for node in node_ids}

    async def edge_degree(self, src_id: str, tgt_id: str) -> int:
        """The sum of the degrees of both ends."""
        degrees = await self.node_degrees_batch([src_id, tgt_id])
        return degrees[src_id] + degrees[tgt_id]

    async def edge_degrees_batch(self, edge_pairs: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """The sum of the degrees of both ends, for each edge."""
        degrees = await self.node_degrees_batch(list({node for pair in edge_pairs for node in pair}))
        return {(source, target): degrees[source] + degrees[target] for source, target in edge_pairs}

    async def get_node(self, node_id: str) -> dict[str, str] | None:
        """A node's properties, or None."""
        return (await self.get_nodes_batch([node_id])).get(node_id)

    async def get_nodes_batch(self, node_ids: list[str]) -> dict[str, dict[str, Any]]:
        """Properties of those nodes that are there."""
        return self.nodes(node_ids)

    async def get_edge(self, source_node_id: str, target_node_id: str) -> dict[str, str] | None:
        """An edge's properties, or None."""
        row = self._db.one(
            "SELECT value FROM edge WHERE source = ? AND target = ?", _ordered(source_node_id, target_node_id)
        )
        return None if row is None else orjson.loads(row[0])

    async def get_edges_batch(self, pairs: list[dict[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
        """Properties of those edges that are there, under the pairs as they were given."""
        wanted = {(pair["src"], pair["tgt"]) for pair in pairs}
        found = self.edges({_ordered(*pair) for pair in wanted})
        return {pair: dict(found[_ordered(*pair)]) for pair in wanted if _ordered(*pair) in found}

    async def get_node_edges(self, source_node_id: str) -> list[tuple[str, str]] | None:
        """Pairs of the node and each neighbour; None for an unknown node."""
        if not await self.has_node(source_node_id):
            return None
        return self._edges_of(source_node_id)

    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        """Pairs of node and neighbour for each node."""
        return {node: self._edges_of(node) for node in node_ids}

    async def upsert_node(self, node_id: str, node_data: dict[str, str]) -> None:
        """Write a node; properties that are not given stay."""
        await self.upsert_nodes_batch([(node_id, node_data)])

    async def upsert_nodes_batch(self, nodes: list[tuple[str, dict[str, str]]]) -> None:
        """Write nodes; properties that are not given stay."""
        with self._db.transaction() as connection:
            connection.executemany(_UPSERT_NODE, [(node, orjson.dumps(value).decode()) for node, value in nodes])

    async def upsert_edge(self, source_node_id: str, target_node_id: str, edge_data: dict[str, str]) -> None:
        """Write an edge; properties that are not given stay."""
        await self.upsert_edges_batch([(source_node_id, target_node_id, edge_data)])

    async def upsert_edges_batch(self, edges: list[tuple[str, str, dict[str, str]]]) -> None:
        """Write edges; properties that are not given stay."""
        with self._db.transaction() as connection:
            connection.executemany(
                "INSERT INTO edge VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = json_patch(value, excluded.value)",
                [(*_ordered(source, target), orjson.dumps(value).decode()) for source, target, value in edges],
            )

    def nodes(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Properties of those nodes that are there."""
        rows = self._db.within("SELECT id, value FROM node WHERE id IN ({})", names)
        return {node: orjson.loads(value) for node, value in rows}

    def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
        """Properties of those edges that are there, whose ends are given in order."""
        return {(source, target): orjson.loads(value) for source, target, value in self._db.within(_EDGES, pairs)}

    def write(
        self,
        connection: Connection,
        nodes: dict[str, dict[str, Any] | None],
        edges: dict[tuple[str, str], dict[str, Any] | None],
    ) -> None:
        """Write nodes and edges whole, ends in order, and remove those that are None, within a transaction of the
        caller's."""
        connection.executemany(
            "DELETE FROM edge WHERE source = ? AND target = ?", [e for e, v in edges.items() if not v]
        )
        connection.executemany("DELETE FROM node WHERE id = ?", [(name,) for name, value in nodes.items() if not value])
        connection.executemany(
            _PUT_NODE, [(name, orjson.dumps(value).decode()) for name, value in nodes.items() if value]
        )
        connection.executemany(
            "INSERT INTO edge VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            [(*ends, orjson.dumps(value).decode()) for ends, value in edges.items() if value],
        )

    async def delete_node(self, node_id: str) -> None:
        """Remove a node and its edges."""
        await self.remove_nodes([node_id])

    async def remove_nodes(self, nodes: list[str]) -> None:
        """Remove nodes and their edges."""
        with self._db.transaction() as connection:
            for sql in ("DELETE FROM node WHERE id = ?", "DELETE FROM edge WHERE source = ?"):
                connection.executemany(sql, [(node,) for node in nodes])
            connection.executemany("DELETE FROM edge WHERE target = ?", [(node,) for node in nodes])

    async def remove_edges(self, edges: list[tuple[str, str]]) -> None:
        """Remove edges, given in either direction."""
        with self._db.transaction() as connection:
            connection.executemany(
                "DELETE FROM edge WHERE source = ? AND target = ?",
                [_ordered(source, target) for source, target in edges],
            )

    async def get_all_labels(self) -> list[str]:
        """All names, in order."""
        return [row[0] for row in self._db.all("SELECT id FROM node ORDER BY id")]

    async def get_popular_labels(self, limit: int = 300) -> list[str]:
        """Names of the nodes with most edges, ties by name."""
        return [row[0] for row in self._db.all(_RANKED, (limit,))]

    async def search_labels(self, query: str, limit: int = 50) -> list[str]:
        """Names that contain the query, exact ones and beginnings first."""
        wanted = query.strip().lower()
        if not wanted:
            return []
        rows = self._db.all(
            "SELECT id FROM node WHERE instr(lower(id), ?1)"
            " ORDER BY lower(id) <> ?1, instr(lower(id), ?1), length(id), id LIMIT ?2",
            (wanted, limit),
        )
        return [row[0] for row in rows]

    async def get_knowledge_graph(self, node_label: str, max_depth: int = 3, max_nodes: int = 1000) -> KnowledgeGraph:
        """The subgraph within `max_depth` steps of a node, or the best connected nodes for `*`."""
        limit = min(max_nodes or 1000, int(self.global_config.get("max_graph_nodes", 1000)))
        if node_label == "*":
            names, truncated = self._ranked_names(limit)
        else:
            names, truncated = await self._reachable(node_label, max_depth, limit)
        nodes = await self.get_nodes_batch(names)
        graph = KnowledgeGraph(is_truncated=truncated)
        graph.nodes = [
            KnowledgeGraphNode(id=name, labels=[name], properties=nodes[name]) for name in names if name in nodes
        ]
        inside = set(nodes)
        for source, target, value in self._db.within(
            "SELECT source, target, value FROM edge WHERE source IN ({})", names
        ):
            if target in inside:
                graph.edges.append(
                    KnowledgeGraphEdge(
                        id=f"{source}-{target}",
                        type="DIRECTED",
                        source=source,
                        target=target,
                        properties=orjson.loads(value),
                    )
                )
        return graph

    async def get_all_nodes(self) -> list[dict[str, Any]]:
        """All nodes with their properties and `id`."""
        return [{**orjson.loads(value), "id": node} for node, value in self._db.all("SELECT id, value FROM node")]

    async def get_all_edges(self) -> list[dict[str, Any]]:
        """All edges with their properties, `source` and `target`."""
        rows = self._db.all("SELECT source, target, value FROM edge")
        return [{**orjson.loads(value), "source": source, "target": target} for source, target, value in rows]

    async def drop(self) -> dict[str, str]:
        """Remove the whole graph."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM node")
            connection.execute("DELETE FROM edge")
        return {"status": "success", "message": "data dropped"}

    def _edges_of(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.all(
            "SELECT target FROM edge WHERE source = ?1"
            " UNION ALL SELECT source FROM edge WHERE target = ?1 AND source <> ?1 LIMIT ?2",
            (node, self.edges_per_node),
        )
        return [(node, row[0]) for row in rows]

    def _ranked_names(self, limit: int) -> tuple[list[str], bool]:
        names = [row[0] for row in self._db.all(_RANKED, (limit + 1,))]
        return names[:limit], len(names) > limit

    async def _reachable(self, start: str, depth: int, limit: int) -> tuple[list[str], bool]:
        """Names by breadth first search, better connected ones first on each level."""
        if not await self.has_node(start):
            return [], False
        names, seen, level = [start], {start}, [start]
        for _ in range(depth):
            neighbours = {name for node in level for _, name in self._edges_of(node)} - seen
            degrees = await self.node_degrees_batch(list(neighbours))
            level = sorted(neighbours, key=lambda name: (-degrees[name], name))
            if len(names) + len(level) > limit:
                return [*names, *level[: limit - len(names)]], True
            names += level
            seen |= neighbours
        return names, False


def _ordered(source: str, target: str) -> tuple[str, str]:
    return (source, target) if source <= target else (target, source)
