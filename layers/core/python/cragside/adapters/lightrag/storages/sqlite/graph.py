"""LightRAG's graph storage on SQLite: nodes by name, undirected edges stored once with their ends in order."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, final

import orjson
from lightrag.base import BaseGraphStorage

from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.storages.sqlite.graph_reader import GraphReader
from cragside.adapters.lightrag.storages.sqlite.unused import unused

# The join looks each pair up in the index; for `(source, target) IN (...)` SQLite reads the whole table.
_EDGES = (
    "WITH wanted (s, t) AS (VALUES {}) SELECT source, target, value FROM wanted CROSS JOIN edge"
    " ON source = s AND target = t"
)


@final
@dataclass
class SqliteGraphStorage(BaseGraphStorage):
    """Reads nodes and edges, many at a time. The ledger writes them."""

    has_node = has_edge = get_node = get_edge = get_node_edges = node_degree = edge_degree = unused
    upsert_node = upsert_edge = delete_node = remove_nodes = remove_edges = drop = unused
    get_all_labels = get_popular_labels = search_labels = get_knowledge_graph = get_all_nodes = get_all_edges = unused
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

    def reader(self) -> GraphReader:
        """What reads the graph as a whole, mentions included."""
        return GraphReader(self._db)

    async def index_done_callback(self) -> None:
        """Nothing to do."""

    async def node_degrees_batch(self, node_ids: list[str]) -> dict[str, int]:
        """The degree of each node."""
        found = dict(self._db.within("SELECT id, degree FROM node WHERE id IN ({})", node_ids))
        return {node: found.get(node, 0) for node in node_ids}

    async def edge_degrees_batch(self, edge_pairs: list[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """The sum of the degrees of both ends, for each edge."""
        degrees = await self.node_degrees_batch(list({node for pair in edge_pairs for node in pair}))
        return {(source, target): degrees[source] + degrees[target] for source, target in edge_pairs}

    async def get_nodes_batch(self, node_ids: list[str]) -> dict[str, dict[str, Any]]:
        """Properties of those nodes that are there."""
        return self.nodes(node_ids)

    async def get_edges_batch(self, pairs: list[dict[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
        """Properties of those edges that are there, under the pairs as they were given."""
        wanted = {(pair["src"], pair["tgt"]) for pair in pairs}
        found = self.edges({_ordered(*pair) for pair in wanted})
        return {pair: dict(found[_ordered(*pair)]) for pair in wanted if _ordered(*pair) in found}

    async def get_nodes_edges_batch(self, node_ids: list[str]) -> dict[str, list[tuple[str, str]]]:
        """Pairs of node and neighbour for each node."""
        return {node: self._edges_of(node) for node in node_ids}

    def nodes(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Properties of those nodes that are there."""
        rows = self._db.within("SELECT id, value FROM node WHERE id IN ({})", names)
        return {node: orjson.loads(value) for node, value in rows}

    def edges(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
        """Properties of those edges that are there, whose ends are given in order."""
        return {(source, target): orjson.loads(value) for source, target, value in self._db.within(_EDGES, pairs)}

    def _edges_of(self, node: str) -> list[tuple[str, str]]:
        rows = self._db.all(
            "SELECT target FROM edge WHERE source = ?1"
            " UNION ALL SELECT source FROM edge WHERE target = ?1 AND source <> ?1 LIMIT ?2",
            (node, self.edges_per_node),
        )
        return [(node, row[0]) for row in rows]


def _ordered(source: str, target: str) -> tuple[str, str]:
    return (source, target) if source <= target else (target, source)
