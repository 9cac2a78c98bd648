"""The steps of indexing a part, each of which is one transaction."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.embedder import Vectors
from cragside.store.ledger.changes import (
    ChangeGuard,
    GraphChange,
    MentionChange,
    OnceGone,
    Row,
    WhileCurrent,
)
from cragside.store.ledger.documents import ERROR_OF_EMBEDDING, ERROR_OF_ENRICHING
from cragside.store.ledger.driver import Driver
from cragside.store.ledger.entries import StoredPart, searched_text
from cragside.store.ledger.exchange import MentionRow, SearchText, insert
from cragside.store.ledger.versions import DocumentWrites

_PART = "version IN (SELECT version FROM crag.document WHERE store = $1) AND version = $2 AND number = $3"
_ENRICHED = f"""UPDATE crag.part SET enrichment = 'enriched', enriched_at = $4, error = {ERROR_OF_EMBEDDING},
    tier3 = jsonb_set(coalesce(tier3, '{{}}')::jsonb, '{{extraction}}', $5::jsonb)::text
    WHERE version = $2 AND number = $3 AND version IN
    (SELECT version FROM crag.document WHERE store = $1 AND state = 'current') RETURNING 1"""
_MENTIONED = f"{insert('mention', MentionRow._fields)} ON CONFLICT DO NOTHING"
_OF_NAME = "store = $1 AND kind = $2 AND md5(name) = md5($3) AND name = $3"
_REMOVED = f"SELECT passage FROM crag.mention WHERE {_OF_NAME} AND passage = ANY($4)"
_OTHERS = f"SELECT passage FROM crag.mention WHERE {_OF_NAME} AND NOT passage = ANY($4) ORDER BY passage LIMIT $5"


class PartWrites(DocumentWrites):
    """Writes parts: their states, their vectors and their share of the graph."""

    def __init__(self, driver: Driver, workspace: str, search_text: SearchText) -> None:
        super().__init__(driver, workspace)
        self._search_text = search_text

    async def begin_enrichment(self, part: StoredPart) -> None:
        """Mark a part as being enriched."""
        await self._set(part, f"enrichment = 'processing', error = {ERROR_OF_EMBEDDING}")

    async def mark_failed(self, part: StoredPart, stage: str, reason: str) -> None:
        """Record that a stage of indexing a part is given up, and why."""
        await self._set(part, "error = $4" if stage == "embed" else "enrichment = 'failed', error = $4", reason)

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
            await self._driver.many("UPDATE crag.passage SET tier2 = $2 WHERE store = $1 AND id = $3", described)
            if tier3 is not None:
                facts = json.dumps(dict(tier3))
                await self._driver.execute(
                    f"UPDATE crag.part SET tier3 = $4 WHERE {_PART}", part.version, part.number, facts
                )

    async def enter_vectors(
        self, task: Task, part: StoredPart, rows: Mapping[str, Row], vectors: Vectors, model: str
    ) -> None:
        """Make the passages of a part searchable. A changed document's last part removes the earlier version.

        `vectors` are by `model`, in the order of `rows`. Raises `ServiceUnavailable` when the store has vectors of
        another model.
        """
        async with self._transaction() as changed:
            changed.status_of_version = part.version
            await self._check_model(model)
            await self._driver.bind(model, vectors.shape[1])
            words = [self._search_text(searched_text(part.title, str(row.get("content", "")))) for row in rows.values()]
            await self._driver.write_passage_vectors(rows, words, vectors)
            await self._driver.execute(
                f"UPDATE crag.part SET embedded = true, error = {ERROR_OF_ENRICHING} WHERE {_PART}",
                part.version,
                part.number,
            )
            waiting = "SELECT 1 FROM crag.part JOIN crag.document USING (version)"
            if not await self._driver.one(
                f"{waiting} WHERE store = $1 AND version = $2 AND NOT embedded LIMIT 1", part.version
            ):
                await self._retire("state = 'replaced'", task.document_id)

    async def apply(self, change: GraphChange, guard: ChangeGuard, model: str) -> bool:
        """Change the graph and the guard's part. Returns False and changes nothing if the guard does not hold.

        Raises `ServiceUnavailable` when the store has vectors of another model.
        """
        async with self._transaction() as changed:
            await self._check_model(model)
            if isinstance(guard, WhileCurrent):
                if not await self._mark_enriched(guard):
                    return False
                changed.status_of_version = guard.part.version
                await self._driver.bind(model, None)
            if isinstance(guard, OnceGone) and not await self._remove(guard.part):
                return False
            await self._driver.change_graph(change, model)
            for mentions in change.mentions:
                await self._write_mentions(mentions)
            return True

    async def passages_for_rebuild(self, kind: str, name: str, removed: Collection[str], most: int) -> list[str]:
        """Return the `removed` passages that mention an entity or a relation, and at most `most` others."""
        these = await self._driver.all(_REMOVED, kind, name, list(removed))
        others = await self._driver.all(_OTHERS, kind, name, list(removed), most)
        return [row[0] for row in (*these, *others)]

    async def embedding_model(self) -> str | None:
        """Return the model that built the store, None while it has no vectors."""
        return await self._driver.embedding_model()

    async def _set(self, part: StoredPart, changes: str, *values: str) -> None:
        async with self._transaction() as changed:
            changed.status_of_version = part.version
            await self._driver.execute(
                f"UPDATE crag.part SET {changes} WHERE {_PART}", part.version, part.number, *values
            )

    async def _check_model(self, model: str) -> None:
        """Refuse another model than the store's. The next try opens the store anew."""
        if await self.embedding_model() not in (None, model):
            raise ServiceUnavailable(
                "knowledge_base", "The store has been built anew with another embedding model meanwhile."
            )

    async def _mark_enriched(self, guard: WhileCurrent) -> bool:
        """Mark a part as enriched. False if its version went meanwhile, which must not come back into the graph."""
        part, now = guard.part, datetime.now(UTC).isoformat()
        tally = json.dumps(dict(guard.tally))
        return await self._driver.value(_ENRICHED, part.version, part.number, now, tally) is not None

    async def _remove(self, part: StoredPart) -> bool:
        """Remove the rows of a part whose version is gone. False when it is not."""
        state = "SELECT 1 FROM crag.document WHERE store = $1 AND version = $2 AND state = 'gone'"
        if await self._driver.one(state, part.version) is None:
            return False
        await self._driver.erase_texts(await self.chunk_ids(part))
        await self._driver.execute(
            "DELETE FROM crag.passage WHERE store = $1 AND version = $2 AND part = $3",
            part.version,
            part.number,
        )
        await self._driver.execute(f"DELETE FROM crag.part WHERE {_PART}", part.version, part.number)
        return True

    async def _write_mentions(self, change: MentionChange) -> None:
        kind = change.kind
        await self._driver.execute(
            "DELETE FROM crag.mention WHERE store = $1 AND kind = $2 AND passage = ANY($3)",
            kind,
            list(change.without_passages),
        )
        await self._driver.execute(
            "DELETE FROM crag.mention WHERE store = $1 AND kind = $2 AND name = ANY($3)",
            kind,
            list(change.without_names),
        )
        await self._driver.many(_MENTIONED, [(kind, *mention) for mention in change.added])
