"""The ledger of a workspace in tables."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime

import numpy as np
from typing_extensions import override

from cragside.adapters.lightrag.ledger.driver import Driver
from cragside.adapters.lightrag.ledger.entries import text_hash
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.part_writes import PartWrites
from cragside.adapters.lightrag.storable import storable
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors

_KEPT = "SELECT text_hash, vector FROM crag.embedding WHERE store = $1 AND model = $2 AND text_hash = ANY($3::bytea[])"
_KEEP = """INSERT INTO crag.embedding (store, model, text_hash, document_id, vector) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (store, model, text_hash) DO UPDATE SET document_id = excluded.document_id"""
_TRIM = """DELETE FROM crag.embedding WHERE store = $1
    AND seq <= (SELECT seq FROM crag.embedding WHERE store = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)"""
_QUERIES = "SELECT id, text, created_at FROM crag.query WHERE store = $1"
_ADD_QUERY = "INSERT INTO crag.query (store, id, text, created_at) VALUES ($1, $2, $3, $4)"
_FACTS = (
    "id, content_hash, state, name, title, file_type, doc_type, size, characters, created_at, updated_at, track,"
    " enrich, tier1, metadata, marks, text"
)
_ADD_DOCUMENT = f"""INSERT INTO crag.document (store, {_FACTS})
    VALUES ($1, {", ".join(f"${number}" for number in range(2, 19))}) RETURNING version"""
# The graph is empty yet.
_PARTS = """SELECT number, key, first, last, CASE enrichment WHEN 'enriched' THEN 'pending' ELSE enrichment END,
    CASE WHEN embedded THEN error ELSE '' END, tier3, enriched_at
    FROM crag.part WHERE version = $2 AND $1::bigint IS NOT NULL"""
_ADD_PART = """INSERT INTO crag.part SELECT $2, $3, $4, $5, $6, false, $7, $8, $9, $10 WHERE $1::bigint IS NOT NULL"""
_ORIGINS = "SELECT document_id, source FROM crag.origin WHERE store = $1 AND document_id = $2"
_ADD_ORIGIN = "INSERT INTO crag.origin (store, document_id, source) VALUES ($1, $2, $3)"


class SqlLedger(PartWrites):
    """A ledger but for what only its database can tell of the store as a whole."""

    @override
    async def dimensions(self) -> int | None:
        return await self._driver.vector_length()

    @override
    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        by_hash = {text_hash(text): text for text in texts}
        rows = await self._driver.all(_KEPT, model, list(by_hash))
        return {by_hash[key]: np.frombuffer(vector, np.float32) for key, vector in rows}

    @override
    async def keep_vectors(
        self, model: str, document_id: str, texts: Sequence[str], vectors: Vectors, *, most: int
    ) -> None:
        kept = [
            (model, text_hash(text), document_id, vector.astype(np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        async with self._transaction():
            await self._driver.many(_KEEP, kept)
            await self._driver.execute(_TRIM, most)

    @override
    async def save_query(self, query: Query, *, most: int) -> None:
        await self._driver.save_query(storable(query.id), storable(query.text), query.created_at.isoformat(), most)

    @override
    async def query(self, query_id: str) -> Query | None:
        row = await self._driver.one(f"{_QUERIES} AND id = $2", storable(query_id))
        return None if row is None else Query(row[0], row[1], self._workspace, datetime.fromisoformat(row[2]))

    @override
    async def copy_facts_from(self, other: Ledger) -> None:
        queries = await self._driver_of(other).all(f"{_QUERIES} ORDER BY seq")
        async with self._transaction():
            await self._driver.many(_ADD_QUERY, [tuple(query) for query in queries])

    @override
    async def copy_document_from(self, other: Ledger, document_id: str) -> None:
        old = self._driver_of(other)
        current = f"SELECT version, {_FACTS} FROM crag.document WHERE store = $1 AND state = 'current' AND id = $2"
        old_version, *facts = await old.one(current, document_id)
        parts = await old.all(_PARTS, old_version)
        origins = await old.all(_ORIGINS, document_id)
        async with self._transaction() as changed:
            changed.document = document_id
            version = await self._driver.value(_ADD_DOCUMENT, *facts)
            await self._driver.many(_ADD_PART, [(version, *part) for part in parts])
            await self._driver.copy_passages(old, old_version, version)
            await self._driver.many(_ADD_ORIGIN, [tuple(origin) for origin in origins])

    @abstractmethod
    def _driver_of(self, other: Ledger) -> Driver:
        """The driver of another ledger, which has to be in the same database. Raises `TypeError`."""
