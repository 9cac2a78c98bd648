"""The ledger of a workspace: the steps of indexing a part, and all that documents and passages keep."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.knowledge import KnowledgeStatus
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.store.chunking import StoredPart, searched_text, storable, text_hash
from cragside.store.documents import ERROR_OF_EMBEDDING, ERROR_OF_ENRICHING
from cragside.store.driver import (
    ChangeGuard,
    Driver,
    GraphChange,
    MentionChange,
    OnceGone,
    PartVectors,
    WhileCurrent,
)
from cragside.store.exchange import (
    DocumentRow,
    EmbeddingRow,
    MentionRow,
    OriginRow,
    PartRow,
    QueryRow,
    SearchText,
    insert,
    select,
)
from cragside.store.versions import DocumentWrites

# ruff: noqa: S608 - statements are put together from names in this module, values are bound


_PART = "version IN (SELECT version FROM crag.document WHERE store = $1) AND version = $2 AND number = $3"
_ENRICHED = f"""UPDATE crag.part SET enrichment = 'enriched', enriched_at = $4, error = {ERROR_OF_EMBEDDING},
    tier3 = jsonb_set(coalesce(tier3, '{{}}')::jsonb, '{{extraction}}', $5::jsonb)::text
    WHERE {_PART}"""
_CURRENT = "SELECT count(*) FROM crag.document WHERE store = $1 AND state = 'current' AND version = ANY($2)"
_MENTIONED = f"{insert('mention', MentionRow._fields)} ON CONFLICT DO NOTHING"
_OF_NAME = "store = $1 AND kind = $2 AND md5(name) = md5($3) AND name = $3"
_REMOVED = f"SELECT passage FROM crag.mention WHERE {_OF_NAME} AND passage = ANY($4)"
_OTHERS = f"SELECT passage FROM crag.mention WHERE {_OF_NAME} AND NOT passage = ANY($4) ORDER BY passage LIMIT $5"
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
_DOCUMENTS = "SELECT count(*) FROM crag.document WHERE store = $1 AND state = 'current'"


class Ledger(DocumentWrites):
    """The documents of a workspace, their versions, parts and passages, and what is known of them.

    Each method that writes is one transaction. All may raise `LedgerError`.
    """

    def __init__(self, driver: Driver, workspace: str, search_text: SearchText) -> None:
        """`search_text` gives the words of a text for full-text search."""
        super().__init__(driver, workspace)
        self._search_text = search_text

    async def begin_enrichment(self, part: StoredPart) -> None:
        """Mark a part as being enriched."""
        await self._set(part, f"enrichment = 'processing', error = {ERROR_OF_EMBEDDING}")

    async def mark_failed(self, part: StoredPart, stage: str, reason: str) -> None:
        """Record that a stage of indexing a part is given up, and why. A part that is searchable keeps its vectors."""
        embedding = "error = CASE WHEN embedded THEN error ELSE $4 END"
        await self._set(part, embedding if stage == "embed" else "enrichment = 'failed', error = $4", reason)

    async def give_back(self, part: StoredPart) -> None:
        """Have a part wait again that is marked as being enriched."""
        again = "CASE enrichment WHEN 'processing' THEN 'pending' ELSE enrichment END"
        await self._set(part, f"enrichment = {again}")

    async def annotate(
        self, part: StoredPart, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None
    ) -> None:
        """Store tier 2 of each passage of a part, in their order, and tier 3 of the part."""
        async with self._transaction():
            ids = await self.chunk_ids(part)
            described = [(json.dumps(dict(tier)), key) for key, tier in zip(ids, tier2, strict=True)]
            await self.driver.many("UPDATE crag.passage SET tier2 = $2 WHERE store = $1 AND id = $3", described)
            if tier3 is not None:
                facts = json.dumps(dict(tier3))
                await self.driver.execute(
                    f"UPDATE crag.part SET tier3 = $4 WHERE {_PART}", part.version, part.number, facts
                )

    async def enter_vectors(self, parts: Sequence[PartVectors], model: str) -> None:
        """Make the passages of parts searchable. A changed document's last part removes the earlier version.

        The vectors are by `model`. Raises `ServiceUnavailable` when the store has vectors of another model.
        """
        documents = {each.part.version: each.document_id for each in parts}
        rows = {key: row for each in parts for key, row in each.rows.items()}
        words = [
            self._search_text(searched_text(each.part.title, str(row.get("content", ""))))
            for each in parts
            for row in each.rows.values()
        ]
        vectors = np.concatenate([each.vectors for each in parts])
        async with self._transaction() as changed:
            changed.status_of_versions = tuple(documents)
            await self._check_model(model)
            await self.driver.bind(model, vectors.shape[1])
            await self.driver.write_passage_vectors(rows, words, vectors)
            await self.driver.many(
                f"UPDATE crag.part SET embedded = true, error = {ERROR_OF_ENRICHING} WHERE {_PART}",
                [(each.part.version, each.part.number) for each in parts],
            )
            waiting = "SELECT 1 FROM crag.part JOIN crag.document USING (version)"
            for version, document_id in documents.items():
                if not await self.driver.one(
                    f"{waiting} WHERE store = $1 AND version = $2 AND NOT embedded LIMIT 1", version
                ):
                    await self._retire("state = 'replaced'", document_id)

    async def apply(self, change: GraphChange, guard: ChangeGuard, model: str) -> bool:
        """Change the graph and the guard's parts. Returns False and changes nothing if the guard does not hold.

        Raises `ServiceUnavailable` when the store has vectors of another model.
        """
        async with self._transaction() as changed:
            await self._check_model(model)
            if isinstance(guard, WhileCurrent):
                if not await self._are_current([part for part, _ in guard.parts]):
                    return False
                await self._mark_enriched(guard)
                changed.status_of_versions = tuple({part.version for part, _ in guard.parts})
                await self.driver.bind(model, None)
            if isinstance(guard, OnceGone) and not await self._remove(guard.part):
                return False
            await self.driver.change_graph(change, model)
            for mentions in change.mentions:
                await self._write_mentions(mentions)
            return True

    async def passages_for_rebuild(self, kind: str, name: str, removed: Collection[str], most: int) -> list[str]:
        """Return the `removed` passages that mention an entity or a relation, and at most `most` others."""
        these = await self.driver.all(_REMOVED, kind, name, list(removed))
        others = await self.driver.all(_OTHERS, kind, name, list(removed), most)
        return [row[0] for row in (*these, *others)]

    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors that the cache has, by their texts."""
        by_hash = {text_hash(text): text for text in texts}
        rows = await self.driver.all(_KEPT, model, list(by_hash))
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
            await self.driver.many(_KEEP, kept)
            await self.driver.execute(_TRIM, most)

    async def save_query(self, query: Query, *, most: int) -> None:
        """Record a query without waiting for other writers; beyond `most`, 1 or more, the oldest are forgotten.

        May raise `StoreRemoved` if the store is no longer there.
        """
        await self.driver.save_query(storable(query.id), storable(query.text), query.created_at.isoformat(), most)

    async def query(self, query_id: str) -> Query | None:
        """Return a recorded query, or None."""
        row = await self.driver.one(_QUERY, storable(query_id))
        return None if row is None else Query(row[0], row[1], self._workspace, datetime.fromisoformat(row[2]))

    async def copy_facts_from(self, other: "Ledger") -> None:
        """Take over the recorded queries of another ledger. This one has to be empty."""
        queries = await self._driver_of(other).all(_QUERIES)
        async with self._transaction():
            await self.driver.many(_ADD_QUERY, [tuple(query) for query in queries])

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
            version = await self.driver.value(_ADD_DOCUMENT, *facts)
            await self.driver.many(_ADD_PART, [(version, *part) for part in parts])
            await self.driver.copy_passages(old, old_version, version)
            await self.driver.many(_ADD_ORIGIN, [tuple(origin) for origin in origins])

    async def status(self, model: str) -> KnowledgeStatus:
        """Count the contents at one moment. `model` is the embedding model that is in use."""
        async with self.driver.sizes() as sizes:
            return KnowledgeStatus(
                workspace=self._workspace,
                embedding_model=model,
                documents=await self.driver.value(_DOCUMENTS),
                by_status=await self._statuses(),
                **sizes._asdict(),
            )

    async def replace_by(self, other: "Ledger") -> None:
        """Take over another store, graph and vectors included, for every process that reads this one."""
        await self.driver.replace_by(self._driver_of(other), self._leases)

    def _driver_of(self, other: "Ledger") -> Driver:
        """Return the driver of another ledger, which has to be in the same kind of database."""
        if type(other.driver) is not type(self.driver):
            raise TypeError("A ledger takes over another one in the same kind of database alone.")
        return other.driver

    async def _set(self, part: StoredPart, changes: str, *values: str) -> None:
        async with self._transaction() as changed:
            changed.status_of_versions = (part.version,)
            await self.driver.execute(
                f"UPDATE crag.part SET {changes} WHERE {_PART}", part.version, part.number, *values
            )

    async def _check_model(self, model: str) -> None:
        """Refuse another model than the store's. The next try opens the store anew."""
        if await self.driver.embedding_model() not in (None, model):
            raise ServiceUnavailable(
                "knowledge_base", "The store has been built anew with another embedding model meanwhile."
            )

    async def _are_current(self, parts: Sequence[StoredPart]) -> bool:
        """Tell if the versions of all parts are current. One that went must not come back into the graph."""
        versions = {part.version for part in parts}
        return bool(await self.driver.value(_CURRENT, list(versions)) == len(versions))

    async def _mark_enriched(self, guard: WhileCurrent) -> None:
        now = datetime.now(UTC).isoformat()
        marks = [(part.version, part.number, now, json.dumps(dict(tally))) for part, tally in guard.parts]
        await self.driver.many(_ENRICHED, marks)

    async def _remove(self, part: StoredPart) -> bool:
        """Remove the rows of a part whose version is gone. False when it is not."""
        state = "SELECT 1 FROM crag.document WHERE store = $1 AND version = $2 AND state = 'gone'"
        if await self.driver.one(state, part.version) is None:
            return False
        await self.driver.erase_texts(await self.chunk_ids(part))
        await self.driver.execute(
            "DELETE FROM crag.passage WHERE store = $1 AND version = $2 AND part = $3",
            part.version,
            part.number,
        )
        await self.driver.execute(f"DELETE FROM crag.part WHERE {_PART}", part.version, part.number)
        return True

    async def _write_mentions(self, change: MentionChange) -> None:
        kind = change.kind
        await self.driver.execute(
            "DELETE FROM crag.mention WHERE store = $1 AND kind = $2 AND passage = ANY($3)",
            kind,
            list(change.without_passages),
        )
        await self.driver.execute(
            "DELETE FROM crag.mention WHERE store = $1 AND kind = $2 AND name = ANY($3)",
            kind,
            list(change.without_names),
        )
        await self.driver.many(_MENTIONED, [(kind, *mention) for mention in change.added])
