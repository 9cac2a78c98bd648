"""The versions of a document: which one is current, and what becomes of the one before it."""

import hashlib
import json
from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any
from urllib.parse import quote

from cragside.adapters.lightrag.chunking import Piece
from cragside.adapters.lightrag.ledger.sqlite.catalogue import Entry
from cragside.adapters.lightrag.store import Store
from cragside.domain.document import SourceText

_ADD_TEXT = "INSERT OR REPLACE INTO kv VALUES ('text_chunks', ?, ?)"
_WANT_ENRICHMENT = "UPDATE part SET enrichment = 'pending' WHERE version = ? AND enrichment = 'none'"


def digest_of(source: SourceText) -> str:
    """Equal for texts that make the same passages, pages and sections."""
    marks = [[mark.start, mark.page, mark.section] for mark in source.marks]
    facts = source.text.strip() + (json.dumps(marks) if marks else "")
    return hashlib.sha256(facts.encode()).hexdigest()


def cut_of(digest: str, pieces: Sequence[Piece], part_passages: int) -> str:
    """Says which text was cut into which passages and parts: other ones have other keys."""
    facts = hashlib.sha256(f"{digest} {part_passages}".encode())
    for piece in pieces:
        facts.update(f" {len(piece.text)} {piece.text}".encode())
    return facts.hexdigest()[:12]


def make_current(store: Store, connection: Connection, entry: Entry) -> None:
    """Make a text the current version of its document; the version that was current is kept while it can be found.

    A text that comes back while its earlier version is there keeps the passages into which that one was cut. One that
    is gone already is indexed again: over its earlier passages if they are the same, beside them otherwise.
    """
    created_at = store.catalogue.created_at(entry.identifier)
    _put_aside(store, connection, entry.identifier)
    known = store.catalogue.version(entry.identifier, entry.digest)
    if known is None:
        version = store.catalogue.add(connection, entry, created_at)
        enter_parts(store, connection, version, entry)
    elif known.state == "replaced":
        version = known.number
        store.catalogue.update(connection, version, entry, created_at)
    elif known.key == f"{entry.key}-0":
        version = known.number
        store.catalogue.update(connection, version, entry, created_at)
        enter_parts(store, connection, version, entry)
    else:
        # Its share of the graph is still to be taken out, by the passages that it had.
        connection.execute(
            "UPDATE document SET content_hash = content_hash || '-' || version WHERE version = ?", (known.number,)
        )
        version = store.catalogue.add(connection, entry, created_at)
        enter_parts(store, connection, version, entry)
    if entry.enrich:
        connection.execute(_WANT_ENRICHMENT, (version,))


def enter_parts(store: Store, connection: Connection, version: int, entry: Entry) -> None:
    """Enter the passages of a version, by parts; those that are there already are the same."""
    entered = store.catalogue.add_parts(connection, version, entry, store.part_passages)
    path = quote(entry.source.name, safe="")
    connection.executemany(
        _ADD_TEXT,
        (
            (chunk, json.dumps(_text_chunk(chunk, part_key, piece, number, path), ensure_ascii=False))
            for number, (chunk, (part_key, piece)) in enumerate(entered.items())
        ),
    )


def retire(store: Store, connection: Connection, where: str, value: Any) -> None:
    """Make versions `gone`, within a transaction of the caller's: nothing of their text is kept.

    What is left are the keys by which their share of the graph is found.
    """
    rows = connection.execute(f"SELECT version FROM document WHERE state <> 'gone' AND {where}", (value,))  # noqa: S608
    for (version,) in rows.fetchall():
        ids = [row[0] for row in connection.execute("SELECT id FROM chunk WHERE version = ?", (version,))]
        store.engine.chunks_vdb.erase(connection, ids)
        connection.executemany("DELETE FROM kv WHERE namespace = 'text_chunks' AND id = ?", [(key,) for key in ids])
        connection.execute("UPDATE chunk SET section = '', tier2 = NULL WHERE version = ?", (version,))
        connection.execute(
            "UPDATE part SET embedded = 0, enrichment = 'none', error = '', tier3 = NULL, enriched_at = NULL"
            " WHERE version = ?",
            (version,),
        )
        connection.execute(
            "UPDATE document SET state = 'gone', text = '', title = '', tier1 = '{}', metadata = '{}', marks = '[]'"
            " WHERE version = ?",
            (version,),
        )


def want_enrichment(store: Store, connection: Connection, document_id: str) -> None:
    """Have the current version enriched, which was accepted without."""
    row = connection.execute(
        "UPDATE document SET enrich = 1 WHERE id = ? AND state = 'current' RETURNING version", (document_id,)
    ).fetchone()
    if row is not None:
        connection.execute(_WANT_ENRICHMENT, row)


def revert(store: Store, connection: Connection, document_id: str) -> bool:
    """Give the current version up for the one before it. False when there is none."""
    before = "SELECT 1 FROM document WHERE id = ? AND state = 'replaced'"
    if connection.execute(before, (document_id,)).fetchone() is None:
        return False
    retire(store, connection, "state = 'current' AND id = ?", document_id)
    connection.execute("UPDATE document SET state = 'current' WHERE id = ? AND state = 'replaced'", (document_id,))
    return True


def _put_aside(store: Store, connection: Connection, identifier: str) -> None:
    """A version that was never complete has nothing to serve until the new one is."""
    current = store.catalogue.record(identifier)
    if current is not None and current.searchable and current.parts:
        connection.execute("UPDATE document SET state = 'replaced' WHERE id = ? AND state = 'current'", (identifier,))
    else:
        retire(store, connection, "state = 'current' AND id = ?", identifier)


def _text_chunk(chunk: str, part_key: str, piece: Piece, number: int, path: str) -> dict[str, object]:
    return {
        "_id": chunk,
        "content": piece.text,
        "tokens": piece.tokens,
        "chunk_order_index": number,
        "full_doc_id": part_key,
        "file_path": path,
        "llm_cache_list": [],
    }
