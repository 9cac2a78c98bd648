"""The one character that PostgreSQL cannot hold is a blank, wherever it stands, as in all stores."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.chunking import storable

TEXT = "one\0two"


class Asked(PostgresDatabase):
    """Notes the values that a statement gets."""

    def __init__(self) -> None:
        super().__init__(PostgresAddress.parse("postgresql://user@127.0.0.1:1/knowledge"), most=1)
        self.values: list[Any] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        yield self

    async def fetch(self, _: str, *values: Any, **__: Any) -> list[Any]:
        self.values += values
        return []

    async def executemany(self, _: str, rows: Any, **__: Any) -> None:
        self.values += rows


async def test_a_value_a_list_and_rows_have_a_blank_instead() -> None:
    database: Any = Asked()
    await database.all("SELECT 1", TEXT, [TEXT, "three"], [1.0, 2.0], None, b"\0")
    assert database.values == [storable(TEXT), [storable(TEXT), "three"], [1.0, 2.0], None, b"\0"]
    database.values.clear()
    database._held.set(database)
    await database.many("INSERT INTO a VALUES ($1, $2)", [(TEXT, [TEXT])])
    assert database.values == [[storable(TEXT), [storable(TEXT)]]]
