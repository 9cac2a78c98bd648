"""Indexes of large workspaces are made on one connection of a process, one workspace after the other."""

import asyncio
from typing import Any

import asyncpg
import pytest

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.store.postgres import searching


class Connection:
    """Counts those that are open."""

    open_ones = 0
    most = 0

    def __init__(self) -> None:
        Connection.open_ones += 1
        Connection.most = max(Connection.most, Connection.open_ones)

    async def execute(self, _: str) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        Connection.open_ones -= 1


async def test_one_connection_is_open_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(**_: Any) -> Connection:
        return Connection()

    async def no_rows(*_: object) -> list[Any]:
        await asyncio.sleep(0)
        return []

    monkeypatch.setattr(asyncpg, "connect", connect)
    monkeypatch.setattr(searching, "_rows", no_rows)
    database = PostgresDatabase(PostgresAddress.parse("postgresql://user@127.0.0.1:1/knowledge"), most=1)
    assert await asyncio.gather(*(searching.make_near_indexes(database, store) for store in range(5))) == [0] * 5
    assert (Connection.most, Connection.open_ones) == (1, 0)
