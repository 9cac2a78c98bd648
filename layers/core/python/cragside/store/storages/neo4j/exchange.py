"""The graph's rows among those of a store, which come from PostgreSQL and go there."""

from collections.abc import AsyncIterator
from typing import Any

import orjson

from cragside.store.ledger.exchange import (
    Batch,
    Batches,
    EdgeRow,
    EmbeddingRow,
    MentionRow,
    NodeRow,
    QueryRow,
    VectorRow,
    inserted,
    rows_at_once,
)
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.interface import ordered
from cragside.store.storages.neo4j.fence import FencedGraph
from cragside.store.storages.neo4j.graph import ROLE

_AFTER = (VectorRow, MentionRow, EmbeddingRow, QueryRow)
_NODES = """MATCH (node:`{label}`) WHERE node.entity_id > $after
    RETURN node.entity_id, properties(node) ORDER BY node.entity_id LIMIT $most"""
_EDGES = """UNWIND $names AS name MATCH (node:`{label}` {{entity_id: name}})-[edge:DIRECTED]-(end)
    WHERE end.entity_id >= name WITH name, end, head(collect(edge)) AS edge
    RETURN name, end.entity_id, properties(edge) ORDER BY name, end.entity_id"""


def with_graph(batches: Batches, graph: FencedGraph, key: str) -> Batches:
    """The rows of a store with those of its graph. Nobody may write to the graph meanwhile."""
    return inserted(batches, _graph_rows(graph, key), _AFTER)


async def without_graph(batches: Batches, store: PostgresStore) -> Batches:
    """The rows for PostgreSQL. Those of the graph go to Neo4j on the way."""
    async for batch in batches:
        if not isinstance(batch[0], NodeRow | EdgeRow):
            yield batch
            continue
        async with store.note():
            await store.journal.note(store.number, ROLE, _change(batch))
        await store.catch_up()


async def _graph_rows(graph: FencedGraph, key: str) -> AsyncIterator[Batch]:
    """Edges come after all nodes. Names are read twice, so that there is no more than a batch of them in memory."""
    async for nodes in _nodes(graph, key):
        yield [NodeRow(name, _json(properties)) for name, properties in nodes]
    async for nodes in _nodes(graph, key):
        edges = await graph.rows(_EDGES.format(label=key), names=[name for name, _ in nodes])
        for start in range(0, len(edges), rows_at_once(EdgeRow)):
            chosen = edges[start : start + rows_at_once(EdgeRow)]
            yield [EdgeRow(*ordered(source, target), _json(properties)) for source, target, properties in chosen]


async def _nodes(graph: FencedGraph, key: str) -> AsyncIterator[list[Any]]:
    after, most = "", rows_at_once(NodeRow)
    while nodes := await graph.rows(_NODES.format(label=key), after=after, most=most):
        yield nodes
        after = nodes[-1][0]


def _change(batch: Batch) -> dict[str, Any]:
    nodes = [[row.id, orjson.loads(row.value)] for row in batch if isinstance(row, NodeRow)]
    edges = [[row.source, row.target, orjson.loads(row.value)] for row in batch if isinstance(row, EdgeRow)]
    return {"nodes": nodes, "edges": edges}


def _json(properties: dict[str, Any]) -> str:
    return orjson.dumps(properties).decode()
