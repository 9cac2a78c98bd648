"""Preferences in PostgreSQL, read and changed at the same time."""

import asyncio
from typing import TYPE_CHECKING, Any

from cragside.adapters.postgres_preferences import PostgresPreferences
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.postgres import Postgres


class Slow(PostgresDatabase):
    """Gives rows when it is told to, as they were when they were asked for."""

    def __init__(self, address: PostgresAddress) -> None:
        super().__init__(address, most=2)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def all(self, sql: str, *values: Any) -> list[Any]:
        """Read now, and answer later."""
        rows = await super().all(sql, *values)
        self.asked.set()
        await self.go_on.wait()
        return rows


async def test_a_read_that_began_before_a_change_does_not_hide_it(postgres: "Postgres") -> None:
    with migrated(postgres) as uri:
        database = Slow(PostgresAddress.parse(uri))
        preferences = PostgresPreferences(database)
        early = asyncio.create_task(preferences.changes("w"))
        await database.asked.wait()
        await preferences.change("w", {"chunk_tokens": 500})
        database.go_on.set()
        assert await early == {}
        assert await preferences.changes("w") == {"chunk_tokens": 500}
        await database.close()


async def test_a_workspace_with_no_change_left_has_no_row(postgres: "Postgres") -> None:
    with migrated(postgres) as uri:
        database = PostgresDatabase(PostgresAddress.parse(uri), most=2)
        preferences = PostgresPreferences(database)
        await preferences.change("w", {"chunk_tokens": 500})
        await preferences.change("w", {"chunk_tokens": None})
        assert await database.value("SELECT count(*) FROM crag.preference") == 0
        await database.close()
