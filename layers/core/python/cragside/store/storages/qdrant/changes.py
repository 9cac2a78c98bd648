"""Changes of vectors as the journal has them."""

import base64
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cragside.store.ledger.changes import Row
from cragside.store.ledger.postgres.store import PostgresStore
from cragside.store.storages.postgres.tables import vector_table

# What the journal calls the vectors.
ROLE = "vector"


async def note(
    store: PostgresStore,
    namespace: str,
    suffix: str,
    dimensions: int,
    *,
    removed: Sequence[str] = (),
    updated: Mapping[str, Row] | None = None,
    written: Mapping[str, tuple[Row, bytes]] | None = None,
) -> None:
    """Note changes of a namespace in the journal, in the transaction that is under way.

    `suffix` ends the names of LightRAG's collections. `written` are rows with their vectors of 32-bit floats.
    """
    now = {"created_at": int(time.time())}
    rows: dict[str, Any] = {
        "removed": list(removed),
        "updated": {name: dict(row) for name, row in (updated or {}).items()},
        "written": {
            name: [{**now, **row}, base64.b64encode(vector).decode()] for name, (row, vector) in (written or {}).items()
        },
    }
    if any(rows.values()):
        change = {"suffix": suffix, "dimensions": dimensions, "rows": {namespace: rows}}
        await store.journal.note(store.number, ROLE, change)


def unpacked(vector: str) -> list[float]:
    """The floats of a vector in a change."""
    floats: list[float] = np.frombuffer(base64.b64decode(vector), np.float32).tolist()
    return floats


def suffix_of(model: str, dimensions: int) -> str:
    """Return the ending of the names of LightRAG's collections for the vectors of a model."""
    return vector_table("", model, dimensions).removeprefix("_")
