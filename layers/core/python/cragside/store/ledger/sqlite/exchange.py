"""Writing a store out of its SQLite file, and taking one in."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from cragside.store.ledger.entries import TEXTS, searched_text, searched_title
from cragside.store.ledger.exchange import (
    Batch,
    Batches,
    DocumentRow,
    EdgeRow,
    EmbeddingRow,
    FactsRow,
    MentionRow,
    NodeRow,
    OriginRow,
    PartRow,
    PassageRow,
    QueryRow,
    Row,
    SearchText,
    ValueRow,
    VectorRow,
    rows_at_once,
)
from cragside.store.ledger.sqlite.database import BUSY_MILLISECONDS, FILE_NAME, failure_of
from cragside.store.ledger.sqlite.lightrag_rows import has_text
from cragside.store.ledger.sqlite.schema import UNTIDY, check_format

_FACTS = f"""SELECT (SELECT value FROM meta WHERE key = 'embedding_model'), (SELECT length(vector) / 4 FROM vector
    LIMIT 1), EXISTS (SELECT 1 FROM meta WHERE key = '{UNTIDY}')"""  # noqa: S608 (our own text)
_DOCUMENTS = "SELECT {} FROM document ORDER BY version".format(", ".join(DocumentRow._fields))  # noqa: S608 (our own)
_PASSAGES = f"""SELECT chunk.id, version, part, number, page, section, tier2, kv.value FROM chunk
    LEFT JOIN kv ON kv.namespace = '{TEXTS}' AND kv.id = chunk.id ORDER BY version, number"""  # noqa: S608 (our own)
_VALUES = f"SELECT namespace, id, value FROM kv WHERE namespace <> '{TEXTS}' ORDER BY rowid"  # noqa: S608 (our own)
_VECTORS = """SELECT namespace, vector.id, value, vector, json_extract(value, '$.content'), title,
    document.name FROM vector LEFT JOIN chunk ON chunk.id = vector.id LEFT JOIN document USING (version) ORDER BY seq"""
_READ: tuple[tuple[type[Row], str, Callable[..., Row]], ...] = (
    (FactsRow, _FACTS, lambda model, dimensions, untidy: FactsRow(model, dimensions, bool(untidy))),
    (DocumentRow, _DOCUMENTS, lambda *row: _typed(DocumentRow(*row))),
    (OriginRow, "SELECT document_id, source FROM origin", OriginRow),
    (PartRow, "SELECT * FROM part", lambda *row: _typed(PartRow(*row))),
    (PassageRow, _PASSAGES, PassageRow),
    (ValueRow, _VALUES, ValueRow),
    (NodeRow, "SELECT id, value FROM node ORDER BY rowid", NodeRow),
    (EdgeRow, "SELECT source, target, value FROM edge ORDER BY rowid", EdgeRow),
    (VectorRow, _VECTORS, lambda *row: _vector(*row)),
    (MentionRow, "SELECT kind, name, passage FROM mention", MentionRow),
    (EmbeddingRow, "SELECT model, text_hash, document_id, vector FROM embedding ORDER BY seq", EmbeddingRow),
    (QueryRow, "SELECT id, text, created_at FROM query ORDER BY rowid", QueryRow),
)
_WRITE: dict[type[Row], str] = {
    DocumentRow: f"INSERT INTO document ({', '.join(DocumentRow._fields)}) VALUES ({', '.join('?' * 18)})",  # noqa: S608
    OriginRow: "INSERT INTO origin VALUES (?, ?)",
    PartRow: "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ValueRow: "INSERT INTO kv VALUES (?, ?, ?)",
    NodeRow: "INSERT INTO node VALUES (?, ?, 0)",
    EdgeRow: "INSERT INTO edge VALUES (?, ?, ?)",
    MentionRow: "INSERT INTO mention VALUES (?, ?, ?)",
    EmbeddingRow: "INSERT INTO embedding (model, text_hash, document_id, vector) VALUES (?, ?, ?, ?)",
    QueryRow: "INSERT INTO query VALUES (?, ?, ?)",
}
_ADD_VECTOR = """INSERT INTO vector (namespace, id, source, target, vector, value)
    VALUES (?1, ?2, coalesce(json_extract(?3, '$.entity_name'), json_extract(?3, '$.src_id')),
    json_extract(?3, '$.tgt_id'), ?4, ?3)"""


async def dump(folder: Path) -> Batches:
    """All rows of a folder's store, as of one moment. Raises `LedgerError`."""
    try:
        with closing(_connected(folder, "ro")) as connection:
            check_format(connection)
            connection.execute("BEGIN")
            for kind, sql, make in _READ:
                found = connection.execute(sql)
                while rows := found.fetchmany(rows_at_once(kind)):
                    yield [make(*row) for row in rows]
    except sqlite3.Error as error:
        raise failure_of(error) from error


async def load(folder: Path, batches: Batches, search_text: SearchText) -> None:
    """Write rows into a folder's store, which is empty and which nobody else uses. Raises `LedgerError`."""
    try:
        with closing(_connected(folder, "rw")) as connection:
            async for batch in batches:
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    _write(connection, batch, search_text)
    except sqlite3.Error as error:
        raise failure_of(error) from error


def _write(connection: sqlite3.Connection, batch: Batch, search_text: SearchText) -> None:
    if statement := _WRITE.get(type(batch[0])):
        connection.executemany(statement, batch)
    for row in batch:
        if isinstance(row, FactsRow):
            facts = {"embedding_model": row.embedding_model, UNTIDY: "copied" if row.untidy else None}
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [fact for fact in facts.items() if fact[1]])
        elif isinstance(row, PassageRow):
            connection.execute("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)", row[:7])
            if row.text is not None:
                connection.execute("INSERT INTO kv VALUES (?, ?, ?)", (TEXTS, row.id, row.text))
        elif isinstance(row, VectorRow):
            added = connection.execute(_ADD_VECTOR, (row.namespace, row.id, row.value, row.vector)).lastrowid
            if row.searched is not None:
                terms = search_text(row.searched)
                connection.execute("INSERT INTO passage (rowid, terms) VALUES (?, ?)", (added, terms))


def _typed(row: DocumentRow | PartRow) -> Row:
    """SQLite has numbers for what is true or false."""
    if isinstance(row, DocumentRow):
        return row._replace(enrich=bool(row.enrich))
    return row._replace(embedded=bool(row.embedded))


def _vector(namespace: str, key: str, value: str, vector: bytes, *passage: Any) -> VectorRow:
    content, title, name = (each or "" for each in passage)
    searched = searched_text(searched_title(title, name), content) if has_text(namespace) else None
    return VectorRow(namespace, key, value, vector, searched)


def _connected(folder: Path, mode: str) -> sqlite3.Connection:
    place = f"{(folder / FILE_NAME).resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(place, uri=True, isolation_level=None, timeout=BUSY_MILLISECONDS / 1000)
