"""A workspace whose statements wait in PostgreSQL leaves connections to the others."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.names import memory_of
from cragside.domain.query import Query
from cragside.store.backends.postgres import PostgresBackend
from cragside.store.ledger import Ledger
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def test_many_queries_of_a_locked_workspace_hold_up_no_other_one(postgres: "Postgres", tmp_path: Path) -> None:
    with migrated(postgres) as uri:
        # Waiting for a connection longer than for a lock: what is not answered meanwhile is never answered.
        database = PostgresDatabase(PostgresAddress.parse(uri), most=10, wait_seconds=60)
        backend = PostgresBackend(database)
        names = ("locked", memory_of("locked"), "calm")
        locked, memory, calm = [
            await backend.open_ledger(tmp_path / name, name, search_text=str.lower) for name in names
        ]
        # The server's view of itself stays the same within a transaction.
        other, watching = await asyncpg.connect(uri), await asyncpg.connect(uri)
        async with other.transaction():
            await other.execute("SELECT FROM crag.store WHERE workspace LIKE 'locked%' FOR UPDATE")
            crowd = [asyncio.create_task(_asked(each)) for each in (locked, memory) for _ in range(20)]
            while await watching.fetchval(_WAITING) < 5:
                await asyncio.sleep(0.01)
            for _ in range(20):
                await _asked(calm)
            assert not any(task.done() for task in crowd)
            assert await watching.fetchval(_WAITING) == 5
        await asyncio.gather(*crowd)
        for ledger in (locked, memory, calm):
            await ledger.driver.close()
            ledger.driver.release()
        await other.close()
        await watching.close()
        await backend.close()


async def _asked(ledger: Ledger) -> None:
    await ledger.save_query(Query("q", "Who lit the lamp?", "w", datetime.now(UTC)), most=3)
