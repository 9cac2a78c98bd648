"""LightRAG's vector storage in Qdrant. cragside searches passages in PostgreSQL, by words and vectors."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from typing_extensions import override

from cragside.domain.outcome import leave_out
from cragside.ports.embedder import Vectors
from cragside.store.ledger.changes import VectorChange
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.interface import Found, Rows, Search
from cragside.store.storages.postgres.finding import find
from cragside.store.storages.postgres.vectors import PASSAGES, PostgresVectors
from cragside.store.storages.qdrant.changes import ROLE, note, suffix_of
from cragside.store.storages.qdrant.fence import FencedVectors
from cragside.store.storages.qdrant.points import collection_of

logger = logging.getLogger("cragside")

# A question waits no longer for entities and relations: words and vectors of passages still answer it.
PATIENCE_SECONDS = 5.0


@final
@dataclass
class QdrantVectors(PostgresVectors):
    """A collection of LightRAG's for each namespace and embedding model."""

    @override
    async def query(self, query: str, top_k: int, query_embedding: list[float] | None = None) -> Rows:
        if self.namespace == PASSAGES:
            return await super().query(query, top_k, query_embedding)
        if query_embedding is None:
            query_embedding = (await self.embedding_func([query], context="query"))[0]
        return await self.near(np.asarray(query_embedding, np.float32), top_k)

    @override
    async def find(self, search: Search, *beside: Any) -> Found:
        """See the base. While Qdrant is out of reach, there are passages alone."""
        entities, relations, _ = beside
        if await self._table() is None:
            return Found([], [], [], None)
        passages, near, related = await asyncio.gather(
            self._near_passages(search),
            entities.near_if_there(search, search.entities),
            relations.near_if_there(search, search.relations),
        )
        return Found(near, related, passages, None)

    async def _near_passages(self, search: Search) -> list[tuple[str, float]]:
        if search.passages is None:
            return []
        alone = Search(None, None, search.passages, search.vectors, search.related, search.most)
        return (await find(self._store, alone, self, self, self, None)).passages

    async def near_if_there(self, search: Search, text: str | None) -> Rows:
        """The nearest rows to a text, none if Qdrant does not answer in time."""
        if text is None:
            return []
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await self.near(search.vector(text), search.related)
        except (LedgerError, TimeoutError) as error:
            reason = error.reason if isinstance(error, LedgerError) else "Qdrant does not answer"
            logger.warning("Workspace %s is searched without its %s: %s", self._store.workspace, self.namespace, reason)
            leave_out("vectors", f"{reason}. Passages were found without entities and relations.")
            return []

    async def near(self, vector: Vectors, most: int) -> Rows:
        """The nearest rows. Raises `LedgerError`."""
        if not (collection := await self._collection()):
            return []
        least = self.cosine_better_than_threshold
        return await vectors_of(self._store).nearest(
            collection, self._store.key, vector.tolist(), least=least, most=most
        )

    @override
    async def get_by_ids(self, ids: list[str]) -> list[dict[str, Any] | None]:
        if not ids or not (collection := await self._collection()):
            return [None] * len(ids)
        return await vectors_of(self._store).rows(collection, self._store.key, ids)

    @override
    async def get_vectors_by_ids(self, ids: list[str]) -> dict[str, Vectors]:
        if self.namespace == PASSAGES:
            return await super().get_vectors_by_ids(ids)
        if not ids or not (collection := await self._collection()):
            return {}
        found = await vectors_of(self._store).vectors(collection, self._store.key, ids)
        return {name: np.asarray(vector, np.float32) for name, vector in found.items()}

    @override
    async def write(self, change: VectorChange) -> None:
        """Note the change in the journal, in the transaction that is under way. `Journal.drain` has it written."""
        if not (suffix := await self._suffix()):
            return
        vectors = (vector.astype(np.float32).tobytes() for vector in change.vectors)
        fields = {*self.meta_fields, "created_at"}
        written = {
            name: ({field: value for field, value in row.items() if field in fields}, vector)
            for (name, row), vector in zip(change.written.items(), vectors, strict=True)
        }
        dimensions = self._dimensions or 0
        removed, updated = change.removed, change.updated
        await note(self._store, self.namespace, suffix, dimensions, removed=removed, updated=updated, written=written)

    @override
    async def make_tables(self, dimensions: int) -> None:
        """The first change makes the collections."""

    async def _suffix(self) -> str:
        """Return the ending of the collection's name; "" while the store has no vectors."""
        if await self._table() is None:
            return ""
        return suffix_of(str(self.embedding_func.model_name), self._dimensions or 0)

    async def _collection(self) -> str:
        suffix = await self._suffix()
        return suffix and collection_of(self.namespace, suffix)


def vectors_of(store: PostgresStore) -> FencedVectors:
    """Qdrant, which has the vectors of all stores."""
    target = store.journal.target(ROLE)
    if not isinstance(target, FencedVectors):
        raise TypeError("The vectors of this store are not in Qdrant.")
    return target
