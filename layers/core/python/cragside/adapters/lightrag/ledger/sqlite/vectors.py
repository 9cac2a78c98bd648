"""Rows of LightRAG's vectors, with full-text search beside those of passages. For transactions of the caller's."""

from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection

import orjson

from cragside.adapters.lightrag.ledger.changes import Row
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.ports.embedder import Vectors

SearchText = Callable[[str], str]


def has_text(namespace: str) -> bool:
    """Whether the rows of a namespace are found by their words as well."""
    return namespace.endswith("chunks")


def write_vectors(
    database: Database,
    connection: Connection,
    namespace: str,
    rows: Mapping[str, Row],
    vectors: Vectors,
    search_text: SearchText = str,
) -> None:
    """Write rows with their vectors. `search_text` gives what full-text search sees of a text."""
    # A fresh sequence number for each written row tells every reader's index what is new.
    erase_vectors(database, connection, namespace, list(rows))
    for (key, row), vector in zip(rows.items(), vectors, strict=True):
        source, target = row.get("entity_name", row.get("src_id")), row.get("tgt_id")
        cursor = connection.execute(
            "INSERT INTO vector (namespace, id, source, target, vector, value) VALUES (?, ?, ?, ?, ?, ?)",
            (namespace, key, source, target, vector.tobytes(), orjson.dumps(row).decode()),
        )
        if has_text(namespace):
            connection.execute(
                "INSERT INTO passage (rowid, terms) VALUES (?, ?)",
                (cursor.lastrowid, search_text(row.get("content", ""))),
            )


def erase_vectors(database: Database, connection: Connection, namespace: str, ids: Sequence[str]) -> None:
    """Remove rows; missing ones are no error."""
    found = database.within("SELECT seq FROM vector WHERE namespace = ? AND id IN ({})", ids, [namespace])
    numbers = [(row[0],) for row in found]
    connection.executemany("DELETE FROM vector WHERE seq = ?", numbers)
    if has_text(namespace):
        connection.executemany("DELETE FROM passage WHERE rowid = ?", numbers)
    database.vector_writes[namespace] += 1
