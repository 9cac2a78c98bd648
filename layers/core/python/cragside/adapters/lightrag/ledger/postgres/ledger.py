"""The ledger of a workspace in PostgreSQL."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import numpy as np
from typing_extensions import override

from cragside.adapters.lightrag.ledger.entries import text_hash
from cragside.adapters.lightrag.ledger.interface import Ledger, Since
from cragside.adapters.lightrag.ledger.leases import StoreRemoved
from cragside.adapters.lightrag.ledger.postgres.answers import copy_answers
from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.lightrag.ledger.postgres.now import NOW, since
from cragside.adapters.lightrag.ledger.postgres.part_writes import PartWrites
from cragside.adapters.lightrag.ledger.postgres.removal import remove_here
from cragside.adapters.lightrag.storable import storable
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.ports.workspaces import KnowledgeStatus

_KEEP = """INSERT INTO crag.embedding (store, model, text_hash, document_id, vector) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (store, model, text_hash) DO UPDATE SET document_id = excluded.document_id"""
_TRIM = """DELETE FROM crag.embedding WHERE store = $1
    AND seq <= (SELECT seq FROM crag.embedding WHERE store = $1 ORDER BY seq DESC OFFSET $2 LIMIT 1)"""
# In one round trip. The parts of a statement do not see each other's rows: the new query is none of the old ones.
_SAVE_QUERY = """WITH saved AS (
    INSERT INTO crag.query (store, id, text, created_at) SELECT store.id, $2, $3, $4 FROM crag.store WHERE store.id = $1
    ON CONFLICT (store, id) DO UPDATE SET text = excluded.text, created_at = excluded.created_at RETURNING 1),
    forgotten AS (DELETE FROM crag.query WHERE store = $1 AND id <> $2 AND seq <= (
        SELECT seq FROM crag.query WHERE store = $1 AND id <> $2 ORDER BY seq DESC OFFSET $5 - 1 LIMIT 1))
    SELECT * FROM saved"""
_NOW = f"SELECT * FROM ({NOW.format(workspace='$2::text')}) AS told WHERE $1::bigint IS NOT NULL"
_COLUMNS = (
    "id, content_hash, state, name, title, file_type, doc_type, size, characters, created_at, updated_at, track,"
    " enrich, tier1, metadata, marks, text"
)
_COPY_DOCUMENT = f"""WITH chosen AS (
    SELECT version AS old, {_COLUMNS} FROM crag.document WHERE store = $2 AND id = $3 AND state = 'current'),
    made AS (INSERT INTO crag.document (store, {_COLUMNS}) SELECT $1, {_COLUMNS} FROM chosen RETURNING version)
    SELECT old, version FROM chosen, made"""
# The graph is empty yet.
_COPY_PARTS = """INSERT INTO crag.part SELECT $2, number, key, first, last, false,
    CASE enrichment WHEN 'enriched' THEN 'pending' ELSE enrichment END, CASE WHEN embedded THEN error ELSE '' END,
    tier3, enriched_at FROM crag.part WHERE version = $3 AND $1::bigint IS NOT NULL"""
_COPY_PASSAGES = """INSERT INTO crag.passage SELECT $1, id, $3, part, number, page, section, tier2, tokens, text
    FROM crag.passage WHERE store = $2 AND version = $4"""
_COPY_ORIGIN = """INSERT INTO crag.origin SELECT $1, document_id, source FROM crag.origin
    WHERE store = $2 AND document_id = $3"""
_TEXTS = """SELECT passage.id, passage.text, passage.tokens, passage.number, part.key, document.name
    FROM crag.passage JOIN crag.document USING (version)
    JOIN crag.part ON part.version = passage.version AND part.number = passage.part
    WHERE passage.store = $1 AND passage.version = $2"""


class PostgresLedger(PartWrites):
    """All of a ledger. Its workspace is a row of a database that others share."""

    @override
    async def dimensions(self) -> int | None:
        stored: int | None = await self._store.value("SELECT dimensions FROM crag.store WHERE id = $1")
        return stored

    @override
    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        by_hash = {text_hash(text): text for text in texts}
        rows = await self._store.all(
            "SELECT text_hash, vector FROM crag.embedding WHERE store = $1 AND model = $2 AND text_hash = ANY($3)",
            model,
            list(by_hash),
        )
        return {by_hash[key]: np.frombuffer(vector, np.float32) for key, vector in rows}

    @override
    async def keep_vectors(
        self, model: str, document_id: str, texts: Sequence[str], vectors: Vectors, *, most: int
    ) -> None:
        rows = zip(texts, vectors, strict=True)
        async with self._transaction():
            await self._store.many(
                _KEEP,
                [(model, text_hash(text), document_id, vector.astype(np.float32).tobytes()) for text, vector in rows],
            )
            await self._store.execute(_TRIM, most)

    @override
    async def save_query(self, query: Query, *, most: int) -> None:
        facts = (storable(query.id), storable(query.text), query.created_at.isoformat())
        if await self._store.value(_SAVE_QUERY, *facts, most) is None:
            raise StoreRemoved

    @override
    async def query(self, query_id: str) -> Query | None:
        row = await self._store.one(
            "SELECT id, text, created_at FROM crag.query WHERE store = $1 AND id = $2", storable(query_id)
        )
        return None if row is None else Query(row[0], row[1], self._workspace, datetime.fromisoformat(row[2]))

    @override
    async def status(self, model: str) -> KnowledgeStatus:
        # A snapshot holds a connection, and keeps PostgreSQL from tidying up. It must not wait for another database.
        outside = await self._store.sizes_of_graph() if self._store.is_outside("graph") else None
        async with self._store.snapshot():
            documents = "SELECT count(*) FROM crag.document WHERE store = $1 AND state = 'current'"
            entities, relations = outside or await self._store.sizes_of_graph()
            return KnowledgeStatus(
                workspace=self._workspace,
                embedding_model=model,
                documents=await self._store.value(documents),
                passages=await self._store.value("SELECT count(*) FROM crag.searched WHERE store = $1"),
                entities=entities,
                relations=relations,
                by_status=await self._statuses(),
                lightrag_workspace=self._store.key,
                waiting_changes=await self._store.value("SELECT count(*) FROM crag.journal WHERE store = $1"),
            )

    @override
    async def copy_facts_from(self, other: Ledger) -> None:
        source = _on_postgres(other)._store.number
        async with self._transaction():
            await self._store.execute(
                "INSERT INTO crag.query (store, id, text, created_at)"
                " SELECT $1, id, text, created_at FROM crag.query WHERE store = $2 ORDER BY seq",
                source,
            )

    @override
    async def copy_document_from(self, other: Ledger, document_id: str) -> None:
        origin = _on_postgres(other)._store
        source = origin.number
        async with self._transaction() as listing:
            listing.entered(document_id)
            old, new = await self._store.one(_COPY_DOCUMENT, source, document_id)
            await self._store.execute(_COPY_PARTS, new, old)
            await self._store.execute(_COPY_PASSAGES, source, new, old)
            await self._store.execute(_COPY_ORIGIN, source, document_id)
            await self._store.write_texts(await self._texts(new))
            await copy_answers(self._store, origin, old)

    async def _texts(self, version: int) -> dict[str, dict[str, Any] | None]:
        """Passages as LightRAG reads them."""
        rows = await self._store.all(_TEXTS, version)
        names = ("content", "tokens", "chunk_order_index", "full_doc_id", "file_path")
        return {key: dict(zip(names, (*row, quote(name, safe="")), strict=True)) for key, *row, name in rows}

    @override
    async def replace_by(self, other: Ledger) -> None:
        fresh, old = _on_postgres(other)._store, self._store
        async with translating(), old.database.transaction():
            await old.touch()
            await self._check_leases()
            await old.execute("UPDATE crag.lease SET store = $2 WHERE store = $1", fresh.number)
            await remove_here(old.database, old.workspace)
            await old.database.value("UPDATE crag.store SET workspace = $2 WHERE id = $1", fresh.number, old.workspace)
        old.heir = fresh.number
        await old.journal.drop_removed()

    @override
    async def state(self) -> str:
        return (await self.since("")).state

    @override
    async def generation(self) -> str:
        return (await self.since("")).generation

    @override
    async def since(self, state: str) -> Since:
        """See the base class. All of it is one row, so that it is read whatever the state was."""
        return since(await self._store.one(_NOW, self._store.workspace))

    @override
    async def opened_with(self) -> tuple[str | None, str]:
        return self._store.model, str(self._store.number)  # both came with the store's row

    @override
    async def flush(self) -> None:
        """PostgreSQL has everything on the disk that was committed."""

    @override
    async def damage(self, *, whole: bool = False) -> str:
        return ""

    @override
    def tidy(self) -> None:
        """PostgreSQL's autovacuum does that."""

    @override
    async def is_untidy(self) -> bool:
        return False

    @property
    @override
    def is_tidying(self) -> bool:
        return False

    @property
    @override
    def place(self) -> str:
        return str(self._store.database.address)

    @property
    @override
    def storages(self) -> Mapping[str, str]:
        return self._store.storages

    @property
    @override
    def read_only(self) -> bool:
        return False

    @override
    async def close(self) -> None:
        await self._store.settle()

    @override
    def release(self) -> None:
        self._store.release()


def _on_postgres(ledger: Ledger) -> "PostgresLedger":
    if not isinstance(ledger, PostgresLedger):
        raise TypeError("A ledger in PostgreSQL takes over another one there alone.")
    return ledger
