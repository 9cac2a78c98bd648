"""The graph and the vectors that other databases have of a store: copying them, and comparing them with the documents.

In a copy, the rows of all databases come as one stream (`exchange.py`). Nobody may write to the other databases
meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import orjson

from cragside.store.exchange import (
    Batch,
    Batches,
    EdgeRow,
    EmbeddingRow,
    FactsRow,
    MentionRow,
    NodeRow,
    QueryRow,
    VectorRow,
    inserted,
    rows_at_once,
)
from cragside.store.outside import graph, vectors
from cragside.store.postgres.store import PostgresStore
from cragside.store.postgres.stores import searched_in
from cragside.store.storages import ordered

_AFTER = (MentionRow, EmbeddingRow, QueryRow)


def with_shares(batches: Batches, store: PostgresStore) -> Batches:
    """Put what only other databases have among the rows of PostgreSQL. Vectors of passages are there already."""
    if store.is_outside(vectors.ROLE):
        batches = inserted(batches, _vectors(store), _AFTER)
    if store.is_outside(graph.ROLE):
        batches = inserted(batches, _graph(store), (VectorRow, *_AFTER))
    return batches


async def without_shares(batches: Batches, store: PostgresStore) -> Batches:
    """Send rows of the graph and of vectors to the other databases. The rows that PostgreSQL needs come back."""
    suffix = ""
    async for batch in batches:
        first = batch[0]
        if isinstance(first, NodeRow | EdgeRow) and store.is_outside(graph.ROLE):
            async with store.note():
                await store.journal.note(store.number, graph.ROLE, _graph_change(batch))
            await store.catch_up()
            continue
        yield batch
        if isinstance(first, FactsRow) and first.embedding_model is not None and first.dimensions is not None:
            suffix = vectors.suffix_of(first.embedding_model, first.dimensions)
        if isinstance(first, VectorRow) and store.is_outside(vectors.ROLE):
            async with store.note():
                await _note_vectors(store, suffix, [row for row in batch if isinstance(row, VectorRow)])
            await store.catch_up()


async def disagreement(store: PostgresStore) -> str:
    """Describe what other databases have too much or too little of once all changes are written; "" for nothing.

    Raises `LedgerError`.
    """
    sizes = await store.sizes_by_mentions()
    if store.is_outside(graph.ROLE):
        of_graph = graph.target_of(store)
        ((nodes, edges),) = await of_graph.rows(of_graph.query("sizes", store.key))
        if (nodes, edges) != sizes:
            names = "the documents name {} entities and {} relations".format(*sizes)
            return f"{names}, but the graph has {nodes} and {edges}"
    if store.is_outside(vectors.ROLE) and store.model is not None and store.dimensions is not None:
        target, wanted = vectors.target_of(store), [await searched_in(store), *sizes]
        counts = [target.count(name, store.key) for name in _collections(store)]
        if (counted := await asyncio.gather(*counts)) != wanted:
            expected = "{} passages, {} entities and {} relations".format(*wanted)
            return "the documents have {}, but {} has {}, {} and {} vectors".format(expected, target.product, *counted)
    return ""


def _collections(store: PostgresStore) -> list[str]:
    suffix, target = vectors.suffix_of(str(store.model), store.dimensions or 0), vectors.target_of(store)
    return [target.collection(namespace, suffix) for namespace in vectors.NAMESPACES]


async def _vectors(store: PostgresStore) -> AsyncIterator[Batch]:
    if store.model is None or store.dimensions is None:
        return
    for namespace, collection in list(zip(vectors.NAMESPACES, _collections(store), strict=True))[1:]:
        async for found in vectors.target_of(store).all(collection, store.key):
            yield [
                VectorRow(namespace, row.pop("id"), _json(row), np.asarray(vector, np.float32).tobytes(), None)
                for row, vector in found
            ]


async def _note_vectors(store: PostgresStore, suffix: str, rows: list[VectorRow]) -> None:
    for namespace in dict.fromkeys(row.namespace for row in rows):
        chosen = [row for row in rows if row.namespace == namespace]
        written = {row.id: (orjson.loads(row.value), row.vector) for row in chosen}
        await vectors.note(store, namespace, suffix, written=written)


async def _graph(store: PostgresStore) -> AsyncIterator[Batch]:
    """Edges come after all nodes. Names are read twice, so that there is no more than a batch of them in memory."""
    target = graph.target_of(store)
    async for nodes in _nodes(store):
        yield [NodeRow(name, _json(properties)) for name, properties in nodes]
    query = target.query("edges_from", store.key)
    async for nodes in _nodes(store):
        edges = await target.rows(query, names=[name for name, _ in nodes])
        for start in range(0, len(edges), rows_at_once(EdgeRow)):
            chosen = edges[start : start + rows_at_once(EdgeRow)]
            yield [EdgeRow(*ordered(source, end), _json(properties)) for source, end, properties in chosen]


async def _nodes(store: PostgresStore) -> AsyncIterator[list[Any]]:
    target, after, most = graph.target_of(store), "", rows_at_once(NodeRow)
    query = target.query("page_of_nodes", store.key)
    while nodes := await target.rows(query, after=after, most=most):
        yield nodes
        after = nodes[-1][0]


def _graph_change(batch: Batch) -> dict[str, Any]:
    nodes = [[row.id, orjson.loads(row.value)] for row in batch if isinstance(row, NodeRow)]
    edges = [[row.source, row.target, orjson.loads(row.value)] for row in batch if isinstance(row, EdgeRow)]
    return {"nodes": nodes, "edges": edges}


def _json(properties: dict[str, Any]) -> str:
    return orjson.dumps(properties).decode()
