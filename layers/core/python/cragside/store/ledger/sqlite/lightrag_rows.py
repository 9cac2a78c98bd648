"""Rows of LightRAG's values and vectors, with the words of passages. For transactions of the caller's."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from cragside.ports.embedder import Vectors
from cragside.store.ledger.changes import Row
from cragside.store.ledger.entries import TEXTS
from cragside.store.ledger.sqlite.database import Database


def write_values(database: Database, namespace: str, data: Mapping[str, dict[str, Any]]) -> None:
    """Write values with the time of their creation and change."""
    now = int(time.time())
    rows = database.within("SELECT id FROM kv WHERE namespace = ? AND id IN ({})", data, [namespace])
    known = {row[0] for row in rows}
    for key, value in data.items():
        if namespace.endswith(TEXTS):
            value.setdefault("llm_cache_list", [])
        if key not in known:
            value["create_time"] = now
        value["update_time"] = now
        value["_id"] = key
    database.many(
        "INSERT INTO kv VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
        [(namespace, key, orjson.dumps(value).decode()) for key, value in data.items()],
    )


def erase_values(database: Database, namespace: str, ids: Iterable[str]) -> None:
    """Remove values; missing ones are no error."""
    database.many("DELETE FROM kv WHERE namespace = ? AND id = ?", [(namespace, key) for key in ids])


def has_text(namespace: str) -> bool:
    """Return True if full-text search finds the rows of a namespace too."""
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
