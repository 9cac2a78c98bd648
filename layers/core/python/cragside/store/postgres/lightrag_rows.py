"""Write the rows that LightRAG's server reads: answers of models about passages, and the list of documents.

Where LightRAG's values are in another database, the ledger notes which passages have an answer. The texts of documents
are not repeated in LightRAG's table of whole documents: its server reads that only to index a text itself."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from cragside.store.chunking import TEXTS
from cragside.store.documents import FAILED
from cragside.store.driver import Changed
from cragside.store.errors import LedgerError

if TYPE_CHECKING:
    from cragside.store.postgres.store import PostgresStore

ANSWERS = "llm_response_cache"
# What the journal calls the values.
ANSWERS_ROLE = "kv"
# The passage of an answer that tells none: summaries of descriptions.
_NO_PASSAGE = ""

# A model's answers quote the passage that they are about. Those that a passage of the same words uses stay. Summaries
# of descriptions do not tell which passages they quote.
_FORGET_IN_TABLES = """WITH workspace AS (SELECT key FROM crag.store WHERE id = $1), going AS (
    SELECT cached.id FROM workspace JOIN lightrag_llm_cache AS cached ON cached.workspace = key
    WHERE chunk_id = ANY($2) OR cache_type = 'summary'
    UNION SELECT jsonb_array_elements_text(llm_cache_list) FROM workspace
    JOIN lightrag_doc_chunks AS chunk ON chunk.workspace = key WHERE id = ANY($2))
    DELETE FROM lightrag_llm_cache USING workspace, going
    WHERE lightrag_llm_cache.workspace = key AND lightrag_llm_cache.id = going.id AND NOT EXISTS (
    SELECT 1 FROM lightrag_doc_chunks AS other WHERE other.workspace = key AND other.llm_cache_list ? going.id
    AND NOT other.id = ANY($2))"""
_ADD = "INSERT INTO crag.answer (store, id, passage) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
_FORGET = """WITH gone AS (
    DELETE FROM crag.answer WHERE store = $1 AND (passage = ANY($2) OR passage = '') RETURNING id)
    SELECT DISTINCT id FROM gone WHERE NOT EXISTS (SELECT FROM crag.answer AS other
        WHERE other.store = $1 AND other.id = gone.id AND other.passage <> '' AND NOT other.passage = ANY($2))
    ORDER BY id"""
# What `text_row` takes.
TEXT = """passage.id, passage.text, passage.tokens, passage.number, part.key, document.name,
    extract(epoch FROM document.created_at::timestamptz)::bigint,
    ARRAY(SELECT answer.id FROM crag.answer WHERE answer.store = $1 AND answer.passage = passage.id ORDER BY seq)"""
PASSAGES = """crag.passage JOIN crag.document USING (version)
    JOIN crag.part ON part.version = passage.version AND part.number = passage.part"""
_TEXTS = f"""SELECT {TEXT} FROM {PASSAGES}
    WHERE passage.store = $1 AND passage.id = ANY($2) AND passage.text IS NOT NULL"""
_ANSWERED = """SELECT answer.id, passage.id FROM crag.passage
    JOIN crag.answer ON answer.store = passage.store AND answer.passage = passage.id
    WHERE passage.store = $1 AND version = $2 ORDER BY seq"""
# As LightRAG's storage gives them.
_IN_TABLES = """SELECT kept.id, passage.id, (
        to_jsonb(kept) - '{workspace,id,return_value}'::text[] || jsonb_build_object('return', return_value,
        'create_time', extract(epoch FROM kept.create_time)::bigint,
        'update_time', extract(epoch FROM kept.update_time)::bigint))::text
    FROM crag.store JOIN crag.passage ON passage.store = crag.store.id
    JOIN lightrag_doc_chunks AS text ON text.workspace = key AND text.id = passage.id
    CROSS JOIN LATERAL jsonb_array_elements_text(llm_cache_list) WITH ORDINALITY AS named (answer, place)
    JOIN lightrag_llm_cache AS kept ON kept.workspace = key AND kept.id = answer
    WHERE crag.store.id = $1 AND version = $2 ORDER BY number, place"""
_COPY = """INSERT INTO lightrag_llm_cache
    SELECT (jsonb_populate_record(kept, jsonb_build_object('workspace', fresh.key))).*
    FROM crag.store AS old, crag.store AS fresh, lightrag_llm_cache AS kept
    WHERE fresh.id = $1 AND old.id = $2 AND kept.workspace = old.key AND kept.id IN (
        SELECT jsonb_array_elements_text(llm_cache_list) FROM crag.passage
        JOIN lightrag_doc_chunks AS text ON text.workspace = old.key AND text.id = passage.id
        WHERE passage.store = $2 AND passage.version = $3)
    ON CONFLICT DO NOTHING"""


class KeptValues(Protocol):
    """A database outside of PostgreSQL with values."""

    async def read(self, key: str, namespace: str, ids: Sequence[str]) -> list[bytes | None]:
        """The JSON of values in the order of the ids. Raises `LedgerError`."""


def values_of(store: "PostgresStore") -> KeptValues:
    """Return the database that has a store's values. Raises `LedgerError` if its address is not set."""
    kept: KeptValues = store.journal.target(ANSWERS_ROLE)
    return kept


async def note_values(store: "PostgresStore", namespace: str, changes: Mapping[str, dict[str, Any] | None]) -> None:
    """Note values in the journal, in the transaction that is under way; None removes."""
    if not changes:
        return
    if namespace == ANSWERS:
        pairs = [(key, row.get("chunk_id") or _NO_PASSAGE) for key, row in changes.items() if row is not None]
        await store.many(_ADD, pairs)
    if namespace == TEXTS:
        named = ((key, row.get("llm_cache_list") or ()) for key, row in changes.items() if row is not None)
        await store.many(_ADD, [(answer, key) for key, answers in named for answer in answers])
        changes = {key: None if row is None else {"llm_cache_list": [], **row} for key, row in changes.items()}
    await store.journal.note(store.number, ANSWERS_ROLE, {namespace: dict(changes)})


async def forget_answers(store: "PostgresStore", passages: Collection[str]) -> None:
    """Forget the answers that quote passages, and all summaries, which do not tell which ones they quote."""
    if not store.is_outside(ANSWERS_ROLE):
        await store.execute(_FORGET_IN_TABLES, list(passages))
        return
    ids = [row[0] for row in await store.all(_FORGET, list(passages))]
    await note_values(store, ANSWERS, dict.fromkeys(ids))


async def texts_by_id(store: "PostgresStore", ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Passages as LightRAG's storage of texts has them, without those that are gone."""
    return {row[0]: text_row(*row) for row in await store.all(_TEXTS, list(ids))}


def text_row(
    key: str, text: str, tokens: int, number: int, part: str, name: str, created: int, answers: Sequence[str]
) -> dict[str, Any]:
    """A passage as LightRAG's storage of texts has it."""
    return {
        "content": text,
        "tokens": tokens,
        "chunk_order_index": number,
        "full_doc_id": part,
        "file_path": quote(name, safe=""),
        "llm_cache_list": list(answers),
        "create_time": created,
        "update_time": created,
        "_id": key,
    }


async def copy_answers(fresh: "PostgresStore", old: "PostgresStore", version: int) -> None:
    """Copy what models said of the passages of a version of `old`, in the transaction that is under way."""
    if not (fresh.is_outside(ANSWERS_ROLE) or old.is_outside(ANSWERS_ROLE)):
        await fresh.execute(_COPY, old.number, version)
        return
    pairs, answers = await _answers(old, version)
    if fresh.is_outside(ANSWERS_ROLE):
        await fresh.many(_ADD, pairs)
        await note_values(fresh, ANSWERS, answers)
    elif answers:
        await fresh.values[ANSWERS].write(answers)


async def _answers(
    old: "PostgresStore", version: int
) -> tuple[list[tuple[str, str]], dict[str, dict[str, Any] | None]]:
    if not old.is_outside(ANSWERS_ROLE):
        rows = await old.all(_IN_TABLES, version)
        return [(row[0], row[1]) for row in rows], {row[0]: json.loads(row[2]) for row in rows}
    pairs = [(row[0], row[1]) for row in await old.all(_ANSWERED, version)]
    ids = list(dict.fromkeys(answer for answer, _ in pairs))
    try:
        kept = await values_of(old).read(old.key, ANSWERS, ids)
    except LedgerError:
        return [], {}  # the model is asked again
    found: dict[str, dict[str, Any] | None] = {
        key: json.loads(row) for key, row in zip(ids, kept, strict=True) if row is not None
    }
    return [pair for pair in pairs if pair[0] in found], found


# ruff: noqa: S608 - statements are put together from names in this module, values are bound


_KEY = "(SELECT key FROM crag.store WHERE id = $1)"
_STATUS = f"""CASE WHEN {FAILED} THEN 'failed'
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
_OF_VERSIONS, _OF_DOCUMENT, _OF_STORE = "version = ANY($2)", "document.id = $2", "true"
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
LISTING_ROLE = "doc_status"


async def list_changed(store: "PostgresStore", changed: Changed) -> None:
    """Have LightRAG's server show what a transaction changed.

    The transaction holds the store's row: two that end at one time then see each other's parts.
    """
    of_status: dict[str, tuple[list[int] | str, ...]] = {}
    if changed.status_of_versions:
        of_status[_OF_VERSIONS] = (list(changed.status_of_versions),)
    if changed.status_of_document is not None:
        of_status[_OF_DOCUMENT] = (changed.status_of_document,)
    if changed.status_of_all:
        of_status[_OF_STORE] = ()
    if store.is_outside(LISTING_ROLE):
        await _note(store, changed, of_status)
        return
    if changed.document is not None:
        await store.execute(_LISTED.format(_OF_DOCUMENT), changed.document)
    if changed.removed is not None:
        await store.execute(_UNLIST, changed.removed)
    for condition, values in of_status.items():
        await store.execute(_SHOW.format(condition), *values)


async def _note(store: "PostgresStore", changed: Changed, of_status: dict[str, tuple[list[int] | str, ...]]) -> None:
    rows: dict[str, Any] = {} if changed.removed is None else {changed.removed: None}
    if changed.document is not None:
        rows |= await _rows(store, _OF_DOCUMENT, changed.document)
    steps, now = {}, datetime.now(UTC).isoformat()
    for condition, values in of_status.items():
        for key, status, error in await store.all(_TOLD.format(condition), *values):
            steps[key] = {"status": status, "error_msg": error, "updated_at": now}
    if rows or steps:
        await store.journal.note(store.number, LISTING_ROLE, {"rows": rows, "steps": steps})


async def list_all(store: "PostgresStore") -> None:
    """List all documents of a store that is new, in the transaction that is under way."""
    if not store.is_outside(LISTING_ROLE):
        await store.execute(_LISTED.format(_OF_STORE))
    elif rows := await _rows(store, _OF_STORE):
        await store.journal.note(store.number, LISTING_ROLE, {"rows": rows})


async def _rows(store: "PostgresStore", condition: str, *values: str) -> dict[str, dict[str, Any]]:
    """Documents as LightRAG's storages have them in JSON."""
    rows = await store.all(f"SELECT {_FACTS.format(condition)}", *values)
    return {key: _listed(dict(zip(_FIELDS, facts, strict=True))) for key, *facts in rows}


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    times = {name: row[name].replace(tzinfo=UTC).isoformat() for name in ("created_at", "updated_at")}
    return {**row, **times, "chunks_list": json.loads(row["chunks_list"]), "metadata": {}}
