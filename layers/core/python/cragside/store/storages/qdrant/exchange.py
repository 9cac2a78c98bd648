"""The rows of entities and relations among those of a store, which come from PostgreSQL and go there."""

from collections.abc import AsyncIterator

import numpy as np
import orjson

from cragside.store.ledger.exchange import (
    Batch,
    Batches,
    EmbeddingRow,
    FactsRow,
    MentionRow,
    QueryRow,
    VectorRow,
    inserted,
)
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.qdrant.changes import note, suffix_of
from cragside.store.storages.qdrant.points import CHANGE, NAMESPACES, OWNER, collection_of
from cragside.store.storages.qdrant.vectors import vectors_of

_AFTER = (MentionRow, EmbeddingRow, QueryRow)
_OURS = (CHANGE, OWNER, "id")


def with_vectors(batches: Batches, store: PostgresStore) -> Batches:
    """The rows of a store with the vectors that Qdrant alone has. Nobody may write to it meanwhile."""
    return inserted(batches, _rows(store), _AFTER)


async def without_vectors(batches: Batches, store: PostgresStore) -> Batches:
    """The rows for PostgreSQL. All vectors go to Qdrant on the way, those of passages stay among them too."""
    suffix, dimensions = "", 0
    async for batch in batches:
        first = batch[0]
        yield batch
        if isinstance(first, FactsRow) and first.embedding_model is not None and first.dimensions is not None:
            suffix, dimensions = suffix_of(first.embedding_model, first.dimensions), first.dimensions
        if isinstance(first, VectorRow):
            async with store.note():
                await _note(store, suffix, dimensions, [row for row in batch if isinstance(row, VectorRow)])
            await store.catch_up()


async def _note(store: PostgresStore, suffix: str, dimensions: int, rows: list[VectorRow]) -> None:
    for namespace in dict.fromkeys(row.namespace for row in rows):
        chosen = [row for row in rows if row.namespace == namespace]
        written = {row.id: (orjson.loads(row.value), row.vector) for row in chosen}
        await note(store, namespace, suffix, dimensions, written=written)


async def _rows(store: PostgresStore) -> AsyncIterator[Batch]:
    if store.model is None or store.dimensions is None:
        return
    suffix = suffix_of(store.model, store.dimensions)
    for namespace in NAMESPACES[1:]:
        async for found in vectors_of(store).all(collection_of(namespace, suffix), store.key):
            yield [
                VectorRow(
                    namespace,
                    row["id"],
                    orjson.dumps({name: value for name, value in row.items() if name not in _OURS}).decode(),
                    np.asarray(vector, np.float32).tobytes(),
                    None,
                )
                for row, vector in found
            ]
