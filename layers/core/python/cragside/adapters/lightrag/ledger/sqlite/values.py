"""Rows of LightRAG's key-value storages. For transactions of the caller's."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from cragside.adapters.lightrag.ledger.cutting import TEXTS
from cragside.adapters.lightrag.ledger.sqlite.database import Database


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
