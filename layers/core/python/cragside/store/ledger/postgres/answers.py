"""Answers of models about passages, and the passages of each.

LightRAG's own tables tell that. Where LightRAG's values are in another database, the ledger notes it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from cragside.store.ledger.entries import TEXTS
from cragside.store.ledger.failures import LedgerError

if TYPE_CHECKING:
    from cragside.store.ledger.postgres.store import PostgresStore

ANSWERS = "llm_response_cache"
# What the journal calls the values.
ROLE = "kv"
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
    WHERE passage.store = $1 AND passage.id = ANY($2) AND passage.text IS NOT NULL"""  # noqa: S608 (our own)
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
    kept: KeptValues = store.journal.target(ROLE)
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
    await store.journal.note(store.number, ROLE, {namespace: dict(changes)})


async def forget_answers(store: "PostgresStore", passages: Collection[str]) -> None:
    """Forget the answers that quote passages, and all summaries, which do not tell which ones they quote."""
    if not store.is_outside(ROLE):
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
    if not (fresh.is_outside(ROLE) or old.is_outside(ROLE)):
        await fresh.execute(_COPY, old.number, version)
        return
    pairs, answers = await _answers(old, version)
    if fresh.is_outside(ROLE):
        await fresh.many(_ADD, pairs)
        await note_values(fresh, ANSWERS, answers)
    elif answers:
        await fresh.values[ANSWERS].write(answers)


async def _answers(
    old: "PostgresStore", version: int
) -> tuple[list[tuple[str, str]], dict[str, dict[str, Any] | None]]:
    if not old.is_outside(ROLE):
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
