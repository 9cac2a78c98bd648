"""The figures of the databases at `GET /metrics`, with a real PostgreSQL."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.composition.databases import standing
from cragside.databases.lease_holders import new_holder
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.document import SourceText
from cragside.entrypoints.metrics import DatabaseCounts, counting_folder, exposition
from cragside.entrypoints.proxy import server
from cragside.ports.telemetry import Standing
from cragside.settings import load_settings
from cragside.store.backends.postgres_tables import is_complete, migrate
from cragside.store.errors import LeaseLost, LedgerError
from tests.embedded_workspaces import store_of
from tests.figures import Counted, of, read
from tests.services.backends import migrated
from tests.services.postgres import Postgres
from tests.services.way import Way

STATEMENT = "cragside_postgres_statement_seconds_count"


@pytest.fixture
def folder() -> Iterator[str]:
    with counting_folder() as made:
        assert made
        yield made


def connections(folder: str, server: str = "postgres") -> dict[str, float | None]:
    counted = read(exposition(folder, None))
    states = ("most", "open", "in_use", "waiting")
    return {state: of(counted, "cragside_database_connections", server=server, state=state) for state in states}


@asynccontextmanager
async def asked(uri: str, home: Path, folder: str) -> AsyncIterator[tuple[Container, httpx.AsyncClient]]:
    settings = load_settings({"RAG_HOME": str(home), "POSTGRES_URI": uri})
    container = Container(settings, figures=DatabaseCounts())
    application, _ = server._application(container, "127.0.0.1", folder)
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        try:
            yield container, client
        finally:
            await container.close()


async def figures(client: httpx.AsyncClient) -> Counted:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    return read(answer.content)


async def test_connections_are_counted_while_they_are_used_awaited_and_open(database: str, folder: str) -> None:
    mine = PostgresDatabase(PostgresAddress.parse(database), most=2, figures=DatabaseCounts())
    assert connections(folder) == {"most": 2, "open": 0, "in_use": 0, "waiting": 0}
    done = asyncio.Event()

    async def hold() -> None:
        async with mine.connection() as connection:
            await connection.execute("SELECT 1")
            await done.wait()

    holding = [asyncio.create_task(hold()) for _ in range(5)]
    crowded = {"most": 2, "open": 2, "in_use": 2, "waiting": 3}
    async with asyncio.timeout(20):
        while connections(folder) != crowded:
            await asyncio.sleep(0.01)
    done.set()
    await asyncio.gather(*holding)
    assert connections(folder) == {"most": 2, "open": 2, "in_use": 0, "waiting": 0}
    await mine.close()
    assert connections(folder) == {"most": 2, "open": 0, "in_use": 0, "waiting": 0}


async def test_statements_are_counted_by_what_they_do(database: str, folder: str) -> None:
    mine = PostgresDatabase(PostgresAddress.parse(database), most=1, figures=DatabaseCounts())
    async with mine.transaction():
        await mine.value("CREATE TEMPORARY TABLE t (n integer) ON COMMIT DROP")
        await mine.many("INSERT INTO t VALUES ($1)", [[1], [2]])
        await mine.value("WITH gone AS (DELETE FROM t RETURNING n) SELECT count(*) FROM gone")
        before = read(exposition(folder, None))
        await mine.value("SELECT pg_sleep(0.2)")
    await asyncio.sleep(0)  # the driver tells of a statement when the loop has the time
    counted = read(exposition(folder, None))
    assert of(counted, STATEMENT, kind="write") == 2
    assert of(counted, STATEMENT, kind="transaction") == 2
    assert of(counted, STATEMENT, kind="read") == (of(before, STATEMENT, kind="read") or 0) + 1
    took = "cragside_postgres_statement_seconds_bucket"
    assert of(counted, took, kind="read", le="0.1") == of(before, took, kind="read", le="0.1")
    await mine.close()


async def test_leases_and_waiting_changes_are_those_of_all_processes(
    postgres: Postgres, tmp_path: Path, folder: str
) -> None:
    with migrated(postgres) as uri:
        async with asked(uri, tmp_path, folder) as (container, client):
            await container.intake.text(SourceText("otters.md", "Sea otters eat urchins."), workspace="zoo")
            store = await store_of(container.workspaces, "zoo")
            lease = await store.ledger.driver.take_lease("graph", new_holder(), 60)
            assert lease is not None
            await store.ledger.driver.take_lease("documents", new_holder(), -1)
            assert container.database is not None
            await container.database.value("INSERT INTO crag.outside SELECT id, 'graph', 2 FROM crag.store")
            await container.database.value(
                """INSERT INTO crag.journal (store, role, seq, change, noted)
                SELECT id, 'graph', n, '{}', now() - make_interval(hours => n)
                FROM crag.store, generate_series(1, 2) n"""
            )
            counted = await figures(client)
            assert of(counted, "cragside_leases", state="held") == 1
            assert of(counted, "cragside_leases", state="expired") == 1
            assert of(counted, "cragside_waiting_changes", role="graph") == 2
            age = of(counted, "cragside_oldest_waiting_change_seconds", role="graph")
            assert age is not None
            assert 7200 <= age < 9000
            assert of(counted, "cragside_leases_lost_total") == 0
            await container.database.value("UPDATE crag.lease SET epoch = epoch + 1")
            with pytest.raises(LeaseLost):
                await store.ledger.with_leases(lease).retire("otters.md")
            assert of(await figures(client), "cragside_leases_lost_total") == 1


async def test_a_database_that_is_silent_takes_no_other_figure_away(
    postgres: Postgres, tmp_path: Path, folder: str
) -> None:
    with migrated(postgres) as uri:
        parts = urlsplit(uri)
        async with Way(parts.port or 5432) as way:
            there = urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{way.port}"))
            async with asked(there, tmp_path, folder) as (_, client):
                assert of(await figures(client), "cragside_leases", state="held") == 0
                way.silent = True
                way.cut()
                began = time.monotonic()
                counted = await figures(client)
    assert time.monotonic() - began < 20
    assert of(counted, "cragside_leases", state="held") is None
    assert of(counted, "cragside_database_connections", server="postgres", state="most") == 10
    assert of(counted, "cragside_requests_total", route="/metrics", method="GET", status="200") == 1


async def test_tables_that_were_made_before_get_the_time_of_changes(postgres: Postgres, tmp_path: Path) -> None:
    with migrated(postgres) as uri:
        container = Container(load_settings({"RAG_HOME": str(tmp_path), "POSTGRES_URI": uri}))
        assert container.database is not None
        mine = container.database
        await mine.value("ALTER TABLE crag.journal DROP COLUMN noted")
        assert await standing(mine) == Standing(0, 0, {})
        assert not await is_complete(mine, model="embedded", dimensions=256)
        async with mine.transaction():
            await mine.value("SELECT count(*) FROM crag.journal")
            other = PostgresDatabase(PostgresAddress.parse(uri), most=1)
            began = time.monotonic()
            with pytest.raises(LedgerError, match="another client of PostgreSQL, which locks what is needed"):
                await migrate(other)
            assert time.monotonic() - began < 15  # a statement may otherwise wait for 20 s, and others behind it
            await other.close()
        for _ in range(2):
            await migrate(mine, model="embedded", dimensions=256)
        assert await is_complete(mine, model="embedded", dimensions=256)
        await container.close()
