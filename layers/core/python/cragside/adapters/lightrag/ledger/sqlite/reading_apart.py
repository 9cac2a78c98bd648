"""Queries that read much of a database."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from cragside.adapters.lightrag.ledger.sqlite.database import Database, failure_of


async def rows_apart(database: Database, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
    """All rows of a query, read in a thread on a connection of its own, so that other requests go on meanwhile.

    It sees what was committed. Raises `LedgerError`.
    """
    return await asyncio.to_thread(_rows, database, sql, parameters)


def _rows(database: Database, sql: str, parameters: Sequence[Any]) -> list[Any]:
    uri = f"{database.path.as_uri()}?mode=ro{'&immutable=1' if database.read_only else ''}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(sql, parameters).fetchall()
    except sqlite3.Error as error:
        raise failure_of(error) from error
