"""How much a workspace in SQLite stores, without opening it."""

import sqlite3
from collections.abc import Collection, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

from cragside.adapters.lightrag.ledger.sizes import stored_of
from cragside.adapters.lightrag.ledger.sqlite.database import failure_of
from cragside.adapters.lightrag.ledger.sqlite.translation import encoded, translated
from cragside.domain.indexing import DocumentKey, Stored


def stored_in(path: Path, keys: Collection[DocumentKey] = ()) -> Stored:
    """What `Ledger.stored` says. Counts and sizes are of one moment. Raises `LedgerError`."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.execute("BEGIN")

            async def read(sql: str, *values: Any) -> list[Any]:
                return connection.execute(translated(sql), encoded(values)).fetchall()

            return _ended(stored_of(read, keys))
    except sqlite3.Error as error:
        raise failure_of(error) from error


def _ended(coroutine: Coroutine[Any, Any, Stored]) -> Stored:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("A statement on SQLite waits for something.")
