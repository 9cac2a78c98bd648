"""The documents in the table that LightRAG's server lists them from, kept as the ledger has them.

Their texts are not repeated in LightRAG's table of whole documents: its server reads that only to index a text itself.
"""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cragside.store.ledger.driver import Changed

if TYPE_CHECKING:
    from cragside.store.ledger.postgres.store import PostgresStore

_KEY = "(SELECT key FROM crag.store WHERE id = $1)"
_STATUS = """CASE
    WHEN bool_or(enrichment = 'failed' OR (error <> '' AND NOT embedded)) THEN 'failed'
    WHEN NOT bool_and(embedded) THEN 'pending'
    WHEN bool_or(enrichment IN ('pending', 'processing')) THEN 'processing'
    ELSE 'processed' END"""
_ERROR = "nullif(string_agg(DISTINCT nullif(error, ''), ' '), '')"
_TOLD = f"""SELECT document.id, {_STATUS} AS status, {_ERROR} AS error
    FROM crag.document LEFT JOIN crag.part USING (version)
    WHERE store = $1 AND state = 'current' AND {{}} GROUP BY document.version"""
# The list of passages is long, so that it is written only together with the passages.
_SHOW = f"""UPDATE lightrag_doc_status AS listed
    SET status = told.status, error_msg = told.error, updated_at = clock_timestamp() AT TIME ZONE 'UTC'
    FROM ({_TOLD}) AS told WHERE listed.workspace = {_KEY} AND listed.id = told.id
    AND (listed.status, listed.error_msg) IS DISTINCT FROM (told.status, told.error)"""
_OF_VERSION, _OF_DOCUMENT, _OF_STORE = "version = $2", "document.id = $2", "true"
# LightRAG shows the first 250 characters of a text, and times of UTC without saying so.
_FACTS = f"""id, left(start, 250) || CASE WHEN characters > 250 THEN '...' ELSE '' END, characters,
    jsonb_array_length(passages), status, name, passages, nullif(left(track, 255), ''), '{{{{}}}}', error, content_hash,
    created_at::timestamptz AT TIME ZONE 'UTC', updated_at::timestamptz AT TIME ZONE 'UTC'
    FROM crag.document JOIN ({_TOLD}) AS told USING (id)
    CROSS JOIN LATERAL (SELECT btrim(left(text, 1000), E' \\t\\n\\r') AS start) AS begun
    CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(passage.id ORDER BY number), '[]') AS passages
        FROM crag.passage WHERE passage.version = document.version) AS cut
    WHERE store = $1 AND state = 'current'"""
_LISTED = f"""INSERT INTO lightrag_doc_status (workspace, id, content_summary, content_length, chunks_count, status,
    file_path, chunks_list, track_id, metadata, error_msg, content_hash, created_at, updated_at)
    SELECT {_KEY}, {_FACTS}
    ON CONFLICT (workspace, id) DO UPDATE SET content_summary = excluded.content_summary,
    content_length = excluded.content_length, chunks_count = excluded.chunks_count, status = excluded.status,
    file_path = excluded.file_path, chunks_list = excluded.chunks_list, track_id = excluded.track_id,
    error_msg = excluded.error_msg, content_hash = excluded.content_hash, updated_at = excluded.updated_at"""
_UNLIST = f"DELETE FROM lightrag_doc_status WHERE workspace = {_KEY} AND id = $2"


_FIELDS = (
    *("content_summary", "content_length", "chunks_count", "status", "file_path", "chunks_list", "track_id"),
    *("metadata", "error_msg", "content_hash", "created_at", "updated_at"),
)
# What the journal calls the list.
ROLE = "doc_status"


async def list_changed(store: "PostgresStore", changed: Changed) -> None:
    """Have LightRAG's server show what a transaction changed.

    The transaction holds the store's row: two that end at one time then see each other's parts.
    """
    of_status: dict[str, tuple[int | str, ...]] = {}
    if changed.status_of_version is not None:
        of_status[_OF_VERSION] = (changed.status_of_version,)
    if changed.status_of_document is not None:
        of_status[_OF_DOCUMENT] = (changed.status_of_document,)
    if changed.status_of_all:
        of_status[_OF_STORE] = ()
    if store.is_outside(ROLE):
        await _note(store, changed, of_status)
        return
    if changed.document is not None:
        await store.execute(_LISTED.format(_OF_DOCUMENT), changed.document)
    if changed.removed is not None:
        await store.execute(_UNLIST, changed.removed)
    for condition, values in of_status.items():
        await store.execute(_SHOW.format(condition), *values)


async def _note(store: "PostgresStore", changed: Changed, of_status: dict[str, tuple[int | str, ...]]) -> None:
    rows: dict[str, Any] = {} if changed.removed is None else {changed.removed: None}
    if changed.document is not None:
        rows |= await _rows(store, _OF_DOCUMENT, changed.document)
    steps, now = {}, datetime.now(UTC).isoformat()
    for condition, values in of_status.items():
        for key, status, error in await store.all(_TOLD.format(condition), *values):
            steps[key] = {"status": status, "error_msg": error, "updated_at": now}
    if rows or steps:
        await store.journal.note(store.number, ROLE, {"rows": rows, "steps": steps})


async def list_all(store: "PostgresStore") -> None:
    """List all documents of a store that is new, in the transaction that is under way."""
    if not store.is_outside(ROLE):
        await store.execute(_LISTED.format(_OF_STORE))
    elif rows := await _rows(store, _OF_STORE):
        await store.journal.note(store.number, ROLE, {"rows": rows})


async def _rows(store: "PostgresStore", condition: str, *values: str) -> dict[str, dict[str, Any]]:
    """Documents as LightRAG's storages have them in JSON."""
    rows = await store.all(f"SELECT {_FACTS.format(condition)}", *values)
    return {key: _listed(dict(zip(_FIELDS, facts, strict=True))) for key, *facts in rows}


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: row[name].replace(tzinfo=UTC).isoformat() for name in ("created_at", "updated_at")}
    return {**row, **times, "chunks_list": json.loads(row["chunks_list"]), "metadata": {}}
