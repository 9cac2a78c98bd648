"""The steps of indexing a part, each of which is one transaction."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from cragside.adapters.lightrag.ledger.changes import (
    ChangeGuard,
    GraphChange,
    MentionChange,
    OnceGone,
    Row,
    WhileCurrent,
)
from cragside.adapters.lightrag.ledger.entries import StoredPart, searched_text
from cragside.adapters.lightrag.ledger.postgres.document_writes import DocumentWrites
from cragside.adapters.lightrag.ledger.postgres.store import PostgresStore, SearchText
from cragside.adapters.lightrag.ledger.postgres.words import counted
from cragside.adapters.lightrag.ledger.sql_rows import ERROR_OF_EMBEDDING, ERROR_OF_ENRICHING
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.embedder import Vectors

_PART = "version IN (SELECT version FROM crag.document WHERE store = $1) AND version = $2 AND number = $3"
_ENRICHED = f"""UPDATE crag.part SET enrichment = 'enriched', enriched_at = $4, error = {ERROR_OF_EMBEDDING},
    tier3 = jsonb_set(coalesce(tier3, '{{}}')::jsonb, '{{extraction}}', $5::jsonb)::text
    WHERE version = $2 AND number = $3 AND version IN
    (SELECT version FROM crag.document WHERE store = $1 AND state = 'current') RETURNING 1"""
# One statement for all rows: each statement counts words (see `search_schema`).
SEARCHED = """INSERT INTO crag.searched (store, id, words, often, length, vector)
    SELECT $1, id, words::tsvector, often::jsonb, length, vector::vector
    FROM unnest($2::text[], $3::text[], $4::text[], $5::integer[], $6::text[]) WITH ORDINALITY
    AS row (id, words, often, length, vector, place) ORDER BY place"""
_BIND = """UPDATE crag.store SET embedding_model = $2, dimensions = coalesce(dimensions, $3)
    WHERE id = $1 AND (embedding_model IS NULL OR (dimensions IS NULL AND $3::integer IS NOT NULL)) RETURNING 1"""
_MENTIONED = "INSERT INTO crag.mention VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"
_NAMING = """SELECT passage FROM crag.mention
    WHERE store = $1 AND kind = $2 AND md5(name) = md5($3) AND name = $3 AND"""


class PartWrites(DocumentWrites):
    """Writes parts: their states, their vectors and their share of the graph."""

    def __init__(self, store: PostgresStore, workspace: str, search_text: SearchText) -> None:
        super().__init__(store, workspace)
        self._search_text = search_text

    @override
    async def begin_enrichment(self, part: StoredPart) -> None:
        await self._set(part, f"enrichment = 'processing', error = {ERROR_OF_EMBEDDING}")

    @override
    async def mark_failed(self, part: StoredPart, stage: str, reason: str) -> None:
        await self._set(part, "error = $4" if stage == "embed" else "enrichment = 'failed', error = $4", reason)

    @override
    async def give_back(self, part: StoredPart) -> None:
        again = "CASE enrichment WHEN 'processing' THEN 'pending' ELSE enrichment END"
        await self._set(part, f"enrichment = {again}")

    @override
    async def annotate(
        self, part: StoredPart, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None
    ) -> None:
        async with self._transaction():
            ids = await self.chunk_ids(part)
            described = [(json.dumps(dict(tier)), key) for key, tier in zip(ids, tier2, strict=True)]
            await self._store.many("UPDATE crag.passage SET tier2 = $2 WHERE store = $1 AND id = $3", described)
            if tier3 is not None:
                facts = json.dumps(dict(tier3))
                await self._store.execute(
                    f"UPDATE crag.part SET tier3 = $4 WHERE {_PART}", part.version, part.number, facts
                )

    @override
    async def enter_vectors(
        self, task: Task, part: StoredPart, rows: Mapping[str, Row], vectors: Vectors, model: str
    ) -> None:
        async with self._transaction() as listing:
            listing.stepped(part.version)
            await self._bind(model, vectors.shape[1])
            words = [self._search_text(searched_text(part.title, str(row.get("content", "")))) for row in rows.values()]
            await self._store.execute("DELETE FROM crag.searched WHERE store = $1 AND id = ANY($2)", list(rows))
            columns = zip(*(counted(text, self._store.number) for text in words), strict=True)
            texts = [f"[{','.join(map(repr, vector.tolist()))}]" for vector in vectors]
            await self._store.execute(SEARCHED, list(rows), *map(list, columns), texts)
            await self._store.write_chunk_vectors(rows, vectors)
            await self._store.execute(
                f"UPDATE crag.part SET embedded = true, error = {ERROR_OF_ENRICHING} WHERE {_PART}",
                part.version,
                part.number,
            )
            waiting = "SELECT 1 FROM crag.part JOIN crag.document USING (version)"
            if not await self._store.one(
                f"{waiting} WHERE store = $1 AND version = $2 AND NOT embedded LIMIT 1", part.version
            ):
                await self._retire("state = 'replaced'", task.document_id)

    @override
    async def apply(self, change: GraphChange, guard: ChangeGuard, model: str) -> bool:
        async with self._transaction() as listing:
            await self._check_model(model)
            if isinstance(guard, WhileCurrent):
                if not await self._mark_enriched(guard):
                    return False
                listing.stepped(guard.part.version)
                await self._bind(model, None)
            if isinstance(guard, OnceGone) and not await self._remove(guard.part):
                return False
            for changed in change.vectors.values():
                if changed.written:
                    await self._bind(model, changed.vectors.shape[1])
            await self._store.write_graph(change)
            for mentions in change.mentions:
                await self._write_mentions(mentions)
            return True

    @override
    async def catch_up(self) -> None:
        await self._store.catch_up()

    @override
    async def catch_up_graph(self) -> None:
        await self._store.catch_up_graph()

    @override
    async def naming(self, kind: str, name: str, going: Collection[str], most: int) -> list[str]:
        these = await self._store.all(f"{_NAMING} passage = ANY($4)", kind, name, list(going))
        others = await self._store.all(
            f"{_NAMING} NOT passage = ANY($4) ORDER BY passage LIMIT $5", kind, name, list(going), most
        )
        return [row[0] for row in (*these, *others)]

    @override
    async def embedding_model(self) -> str | None:
        model: str | None = await self._store.value("SELECT embedding_model FROM crag.store WHERE id = $1")
        return model

    async def _set(self, part: StoredPart, changes: str, *values: str) -> None:
        async with self._transaction() as listing:
            listing.stepped(part.version)
            await self._store.execute(
                f"UPDATE crag.part SET {changes} WHERE {_PART}", part.version, part.number, *values
            )

    async def _check_model(self, model: str) -> None:
        """The next try opens the store anew."""
        if await self.embedding_model() not in (None, model):
            raise ServiceUnavailable(
                "knowledge_base", "The store has been built anew with another embedding model meanwhile."
            )

    async def _bind(self, model: str, dimensions: int | None) -> None:
        await self._check_model(model)
        if await self._store.value(_BIND, model, dimensions) and dimensions is not None:
            await self._store.make_vector_tables(dimensions)

    async def _mark_enriched(self, guard: WhileCurrent) -> bool:
        """A version that went meanwhile must not come back into the graph."""
        part, now = guard.part, datetime.now(UTC).isoformat()
        tally = json.dumps(dict(guard.tally))
        return await self._store.value(_ENRICHED, part.version, part.number, now, tally) is not None

    async def _remove(self, part: StoredPart) -> bool:
        """Remove the rows of a part whose version is gone. False when it is not."""
        state = "SELECT 1 FROM crag.document WHERE store = $1 AND version = $2 AND state = 'gone'"
        if await self._store.one(state, part.version) is None:
            return False
        await self._erase_passages(await self.chunk_ids(part))
        await self._store.execute(
            "DELETE FROM crag.passage WHERE store = $1 AND version = $2 AND part = $3",
            part.version,
            part.number,
        )
        await self._store.execute(f"DELETE FROM crag.part WHERE {_PART}", part.version, part.number)
        return True

    async def _write_mentions(self, change: MentionChange) -> None:
        kind = change.kind
        await self._store.execute(
            "DELETE FROM crag.mention WHERE store = $1 AND kind = $2 AND passage = ANY($3)",
            kind,
            list(change.without_passages),
        )
        await self._store.execute(
            "DELETE FROM crag.mention WHERE store = $1 AND kind = $2 AND name = ANY($3)",
            kind,
            list(change.without_names),
        )
        await self._store.many(_MENTIONED, [(kind, *mention) for mention in change.added])
