"""Rows of LightRAG's vectors, with full-text search beside those of passages. For transactions of the caller's."""

from collections.abc import Mapping, Sequence

import orjson

from cragside.adapters.lightrag.ledger.changes import Row
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.ports.embedder import Vectors


def has_text(namespace: str) -> bool:
    """Whether the rows of a namespace are found by their words as well."""
    return namespace.endswith("chunks")


def write_vectors(
    database: Database, namespace: str, rows: Mapping[str, Row], vectors: Vectors, searched: Sequence[str] = ()
) -> None:
    """Write rows with their vectors. `searched` is what full-text search sees of passages."""
    # A fresh sequence number for each written row tells every reader's index what is new.
    erase_vectors(database, namespace, list(rows))
    words = searched or [""] * len(rows)
    for (key, row), vector, terms in zip(rows.items(), vectors, words, strict=True):
        source, target = row.get("entity_name", row.get("src_id")), row.get("tgt_id")
        added = database.one(
            "INSERT INTO vector (namespace, id, source, target, vector, value) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq",
            (namespace, key, source, target, vector.tobytes(), orjson.dumps(row).decode()),
        )
        if has_text(namespace):
            database.one("INSERT INTO passage (rowid, terms) VALUES (?, ?)", (*added, terms))


def erase_vectors(database: Database, namespace: str, ids: Sequence[str]) -> None:
    """Remove rows; missing ones are no error."""
    found = database.within("SELECT seq FROM vector WHERE namespace = ? AND id IN ({})", ids, [namespace])
    numbers = [(row[0],) for row in found]
    database.many("DELETE FROM vector WHERE seq = ?", numbers)
    if has_text(namespace):
        database.many("DELETE FROM passage WHERE rowid = ?", numbers)
    database.vector_writes[namespace] += 1
