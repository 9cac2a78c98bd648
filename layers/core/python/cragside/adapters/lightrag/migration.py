"""From older formats of a store to the present one.

In the first, LightRAG kept the documents; the second has a catalogue; the third knows the sources of documents.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any

_DOCUMENTS = """
SELECT status.id, status.status, status.created_at, status.updated_at, status.value, source.name, source.title,
    full.value
FROM source JOIN kv AS full ON full.namespace = 'full_docs' AND full.id = source.doc_id
LEFT JOIN doc_status AS status ON status.id = source.doc_id ORDER BY source.name
"""
_PROCESSED = "processed"


def add_origins(connection: sqlite3.Connection, origin: str) -> None:
    """Let documents share a name, within a transaction of the caller's. Those that are there have no source yet."""
    connection.execute("DROP INDEX document_by_name")
    connection.execute("CREATE INDEX document_by_name ON document (name) WHERE state = 'current'")
    connection.execute(origin)


def add_catalogue(connection: sqlite3.Connection, catalogue: str) -> None:
    """Make the tables of the catalogue and fill them, within a transaction of the caller's.

    Passages and graph stay as they are. A text whose indexing was interrupted is in the catalogue without parts: it is
    cut when the store is opened, and what was there of it is gone.
    """
    for statement in catalogue.split(";\n"):
        connection.execute(statement)
    for row in connection.execute(_DOCUMENTS).fetchall():
        _add_document(connection, *row)
    for kind, namespace in (("entity", "entity_chunks"), ("relation", "relation_chunks")):
        connection.executemany("INSERT OR IGNORE INTO mention VALUES (?, ?, ?)", _mentions(connection, kind, namespace))
    connection.execute("DELETE FROM kv WHERE namespace IN ('full_docs', 'entity_chunks', 'relation_chunks')")
    connection.execute("DELETE FROM doc_status")
    connection.execute("DROP TABLE source")


def _add_document(
    connection: sqlite3.Connection,
    key: str | None,
    status: str | None,
    created: str | None,
    updated: str | None,
    fields: str | None,
    name: str,
    title: str,
    full: str,
) -> None:
    text = str(json.loads(full).get("content") or "")
    if not text:
        return
    identifier = key or "doc-" + hashlib.md5(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    passages = [str(passage) for passage in (json.loads(fields).get("chunks_list") or [])] if fields else []
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    file_type = name.rpartition(".")[2].lower() if "." in name else "txt"
    facts = (name, title, file_type, "text", len(text.encode()), len(text), created or "", updated or "", "", 1)
    done = status == _PROCESSED and bool(passages)
    _add_version(connection, (identifier, digest, "current", *facts, "{}", "{}", "[]", text))
    if not done and key is not None:
        _add_version(connection, (identifier, "interrupted", "gone", *facts, "{}", "{}", "[]", ""))
    if key is None or (not passages and done):
        return
    version = connection.execute("SELECT max(version) FROM document").fetchone()[0]
    connection.execute(
        "INSERT INTO part VALUES (?, 0, ?, 0, ?, ?, ?, '', NULL, ?)",
        (version, key, len(passages) - 1, int(done), "enriched" if done else "none", updated if done else None),
    )
    connection.executemany(
        "INSERT OR IGNORE INTO chunk VALUES (?, ?, 0, ?, NULL, '', NULL)",
        [(passage, version, number) for number, passage in enumerate(passages)],
    )


def _add_version(connection: sqlite3.Connection, values: tuple[Any, ...]) -> None:
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO document VALUES (NULL, {marks})", values)  # noqa: S608 (question marks only)


def _mentions(connection: sqlite3.Connection, kind: str, namespace: str) -> Iterator[tuple[str, str, str]]:
    for name, value in connection.execute("SELECT id, value FROM kv WHERE namespace = ?", (namespace,)).fetchall():
        for passage in json.loads(value).get("chunk_ids") or []:
            yield kind, name, str(passage)
