"""The ledger of a workspace."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from cragside.domain.knowledge import KnowledgeStatus
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.store.ledger.driver import Driver
from cragside.store.ledger.entries import text_hash
from cragside.store.ledger.exchange import DocumentRow, EmbeddingRow, OriginRow, PartRow, QueryRow, insert, select
from cragside.store.ledger.parts import PartWrites
from cragside.store.storable import storable

_KEPT = "SELECT text_hash, vector FROM crag.embedding WHERE store = $1 AND model = $2 AND text_hash = ANY($3::bytea[])"
_KEEP = f"""{insert("embedding", EmbeddingRow._fields)}
    ON CONFLICT (store, model, text_hash) DO UPDATE SET document_id = excluded.document_id"""
_TRIM = """DELETE FROM crag.embedding WHERE store = $1
    AND seq <= (SELECT seq FROM crag.embedding WHERE store = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)"""
_QUERY = "SELECT id, text, created_at FROM crag.query WHERE store = $1 AND id = $2"
_QUERIES, _ADD_QUERY = select(QueryRow), insert("query", QueryRow._fields)
_DOCUMENT = select(DocumentRow, " AND state = 'current' AND id = $2")
_ADD_DOCUMENT = f"{insert('document', DocumentRow._fields[1:])} RETURNING version"
# The graph is empty yet.
_PARTS = """SELECT number, key, first, last, false,
    CASE enrichment WHEN 'enriched' THEN 'pending' ELSE enrichment END,
    CASE WHEN embedded THEN error ELSE '' END, tier3, enriched_at
    FROM crag.part WHERE version = $2 AND $1::bigint IS NOT NULL"""
_ADD_PART = insert("part", PartRow._fields)
_ORIGINS, _ADD_ORIGIN = select(OriginRow, " AND document_id = $2"), insert("origin", OriginRow._fields)


class Since(NamedTuple):
    """A store's state, the model that its vectors are of, and its generation."""

    state: str
    embedding_model: str | None
    generation: str


class Ledger(PartWrites, ABC):
    """The documents of a workspace, their versions, parts and passages, and what is known of them.

    Each method that writes is one transaction. All may raise `LedgerError`.
    """

    async def dimensions(self) -> int | None:
        """Return the length of the vectors, None while there are none."""
        return await self._driver.vector_length()

    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors that the cache has, by their texts."""
        by_hash = {text_hash(text): text for text in texts}
        rows = await self._driver.all(_KEPT, model, list(by_hash))
        return {by_hash[key]: np.frombuffer(vector, np.float32) for key, vector in rows}

    async def keep_vectors(
        self, model: str, document_id: str, texts: Sequence[str], vectors: Vectors, *, most: int
    ) -> None:
        """Keep vectors in the cache for as long as the document has this text, `most` of all documents."""
        kept = [
            (model, text_hash(text), document_id, vector.astype(np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        async with self._transaction():
            await self._driver.many(_KEEP, kept)
            await self._driver.execute(_TRIM, most)

    async def save_query(self, query: Query, *, most: int) -> None:
        """Record a query without waiting for other writers; beyond `most`, 1 or more, the oldest are forgotten.

        May raise `StoreRemoved` if the store is no longer there.
        """
        await self._driver.save_query(storable(query.id), storable(query.text), query.created_at.isoformat(), most)

    async def query(self, query_id: str) -> Query | None:
        """Return a recorded query, or None."""
        row = await self._driver.one(_QUERY, storable(query_id))
        return None if row is None else Query(row[0], row[1], self._workspace, datetime.fromisoformat(row[2]))

    async def copy_facts_from(self, other: "Ledger") -> None:
        """Take over the recorded queries of another ledger, and whether it is parted. For an empty ledger."""
        queries = await self._driver_of(other).all(_QUERIES)
        async with self._transaction():
            await self._driver.many(_ADD_QUERY, [tuple(query) for query in queries])

    async def copy_document_from(self, other: "Ledger", document_id: str) -> None:
        """Take over a current document of another ledger, with what models said of it.

        Its vectors and its share of the graph stay behind.
        """
        old = self._driver_of(other)
        old_version, *facts = await old.one(_DOCUMENT, document_id)
        parts = await old.all(_PARTS, old_version)
        origins = await old.all(_ORIGINS, document_id)
        async with self._transaction() as changed:
            changed.document = document_id
            version = await self._driver.value(_ADD_DOCUMENT, *facts)
            await self._driver.many(_ADD_PART, [(version, *part) for part in parts])
            await self._driver.copy_passages(old, old_version, version)
            await self._driver.many(_ADD_ORIGIN, [tuple(origin) for origin in origins])

    @abstractmethod
    def _driver_of(self, other: "Ledger") -> Driver:
        """Return the driver of another ledger, which has to be in the same database. Raises `TypeError`."""

    @abstractmethod
    async def catch_up(self) -> None:
        """Have other databases hold all that was committed. Whoever changes the graph calls this first.

        Raises `LedgerError` while one of them is out of reach, and when it has what was there at another time.
        """

    @abstractmethod
    async def catch_up_graph(self) -> None:
        """Have the graph be all that was committed. Whoever shows it calls this first.

        The graph lags behind where another database has it. Raises `LedgerError` as `catch_up` does, and when it takes
        more than a few seconds.
        """

    @abstractmethod
    async def replace_by(self, other: "Ledger") -> None:
        """Take over another store, graph and vectors included, for every process that reads this one."""

    @abstractmethod
    async def status(self, model: str) -> KnowledgeStatus:
        """Count the contents at one moment. `model` is the embedding model that is in use."""

    @abstractmethod
    async def state(self) -> str:
        """Return a token that changes whenever content changes, whoever writes it."""

    @abstractmethod
    async def generation(self) -> str:
        """Return a token that changes when the whole content was replaced."""

    async def since(self, state: str) -> "Since | None":
        """Return the state of the store, None if it is still `state`."""
        if (now := await self.state()) == state:
            return None
        return Since(now, await self.embedding_model(), await self.generation())

    async def opened_with(self) -> tuple[str | None, str]:
        """Return the embedding model and the generation, as they are when the ledger is opened."""
        return await self.embedding_model(), await self.generation()

    @abstractmethod
    async def flush(self) -> None:
        """Have everything on the disk that was written, so that not even a power cut takes it."""

    @abstractmethod
    async def damage(self, *, whole: bool = False) -> str:
        """Describe the damage, "" for none. With `whole` everything is read now, however long it takes."""

    @abstractmethod
    def tidy(self) -> None:
        """Free unused disk space soon."""

    @abstractmethod
    async def is_untidy(self) -> bool:
        """Return True if removed rows still hold disk space, even after a process was killed."""

    @property
    @abstractmethod
    def is_tidying(self) -> bool:
        """Return True if tidying is asked for or under way."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Return the place of the ledger, for an operator."""

    @property
    def storages(self) -> Mapping[str, str]:
        """LightRAG's classes that the store was made for, by their roles; empty where there is no choice."""
        return {}

    @property
    @abstractmethod
    def read_only(self) -> bool:
        """Return True if nothing can be written."""

    @abstractmethod
    async def close(self) -> None:
        """End what is under way. `release` follows when nobody reads any more."""

    @abstractmethod
    def release(self) -> None:
        """Give the connection back."""
