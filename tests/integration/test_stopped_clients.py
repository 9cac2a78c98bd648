"""Clients of PostgreSQL that are stopped, forget what they began or were killed hold nobody up for long."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import AsyncMock

import asyncpg
import pytest

from cragside.bootstrap import Container
from cragside.databases.postgres import connections
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import FAILURES, meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.document import SourceText
from cragside.domain.indexing import Task
from cragside.settings import Settings
from cragside.store.backends.postgres import PostgresBackend
from cragside.store.postgres import stores as directory
from cragside.store.queues import postgres as queues
from cragside.store.queues import sql, turns
from cragside.store.queues.postgres import postgres_queue
from tests.embedded_workspaces import embedded_workspaces
from tests.fakes import WordGrader
from tests.places import forked
from tests.services.backends import migrated
from tests.unit.lightrag.test_workspaces import LetterEmbedder

if TYPE_CHECKING:
    from tests.services.pgbouncer import Pgbouncer
    from tests.services.postgres import Postgres

_TAKE = "UPDATE crag.store SET state = state + 1 WHERE workspace = 'w'"
_STORE = "INSERT INTO crag.store (workspace, key, storages) VALUES ('w', 'key', '{}')"


def stops_in_a_transaction(uri: str) -> None:
    """A process that locks a row of the store, and is stopped before it commits."""
    connections.IDLE_SECONDS = 0.5

    async def begin() -> None:
        database = PostgresDatabase(PostgresAddress.parse(uri), most=1)
        async with database.transaction():
            await database.value(_TAKE)
            os.kill(os.getpid(), signal.SIGSTOP)

    asyncio.run(begin())


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_process_that_is_stopped_in_a_transaction_loses_its_locks(
    postgres: "Postgres", pgbouncer: "Pgbouncer", pooled: bool
) -> None:
    with migrated(postgres) as uri:
        way = pgbouncer.through(uri) if pooled else uri
        database = PostgresDatabase(PostgresAddress.parse(way), most=1)
        await database.value(_STORE)
        stopped = forked(stops_in_a_transaction, way)
        try:
            await asyncio.to_thread(os.waitid, os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
            await database.value(_TAKE)  # waits until the server has ended the other transaction
            assert await database.value("SELECT state FROM crag.store") == 1
        finally:
            os.kill(stopped.pid, signal.SIGKILL)
            stopped.join()
            await database.close()


def stops_while_it_chooses(uri: str) -> None:
    """A worker that is stopped when it has found its task, before it has taken it."""
    queues.STOPPED_SECONDS = 0.5

    async def stop(*_: object) -> list[turns.Turn]:
        os.kill(os.getpid(), signal.SIGSTOP)
        return []

    sql.next_tasks = stop
    asyncio.run(postgres_queue(PostgresDatabase(PostgresAddress.parse(uri), most=1)).receive(limit=1, wait=0))


@pytest.mark.parametrize("pooled", [False, True])
async def test_a_worker_that_is_stopped_while_it_chooses_keeps_others_waiting_for_a_moment(
    postgres: "Postgres", pgbouncer: "Pgbouncer", pooled: bool
) -> None:
    with migrated(postgres) as uri:
        way = pgbouncer.through(uri) if pooled else uri
        database = PostgresDatabase(PostgresAddress.parse(way), most=1)
        queue = postgres_queue(database)
        await queue.send([Task("w", "doc-1", "sha", 0, "embed")])
        stopped = forked(stops_while_it_chooses, way)
        try:
            await asyncio.to_thread(os.waitid, os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
            assert await queue.receive(limit=1, wait=0) == []
            # Long before the server ends transactions of other kinds.
            async with asyncio.timeout(connections.IDLE_SECONDS / 2):
                assert len(await queue.receive(limit=1, wait=connections.IDLE_SECONDS)) == 1
        finally:
            os.kill(stopped.pid, signal.SIGKILL)
            stopped.join()
            await database.close()


async def test_a_statement_that_waits_for_somebody_elses_lock_says_so(postgres: "Postgres") -> None:
    with migrated(postgres) as uri:
        forgetful = await asyncpg.connect(uri)
        await forgetful.execute("BEGIN; LOCK TABLE crag.store")
        database = PostgresDatabase(PostgresAddress.parse(uri), most=1, statement_seconds=1.0)
        with pytest.raises(FAILURES) as failed:
            await database.value(_TAKE)
        assert "another client" in meaning_of(failed.value)[1]
        await forgetful.close()
        await database.close()


async def test_a_database_that_was_read_only_for_a_while_is_written_again(postgres: "Postgres") -> None:
    with migrated(postgres) as uri:
        name = uri.rpartition("/")[2]
        database = PostgresDatabase(PostgresAddress.parse(uri), most=2)
        administrator = await asyncpg.connect(uri)
        await administrator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        with pytest.raises(FAILURES) as failed:
            await database.value(_STORE)
        assert "read-only" in meaning_of(failed.value)[1]
        await administrator.execute("SET default_transaction_read_only = off")
        await administrator.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await database.value(_STORE)
        await administrator.close()
        await database.close()


async def test_two_databases_in_one_process_share_nothing(postgres: "Postgres", tmp_path: Path) -> None:
    with migrated(postgres) as one, migrated(postgres) as other:
        opened = [
            Container(Settings(home=tmp_path), database=PostgresDatabase(PostgresAddress.parse(uri), most=2))
            for uri in (one, other)
        ]
        for container, text in zip(opened, ("The aardvark digs.", "The zebra runs."), strict=True):
            passages = (await container.workspaces.open("w")).passages
            await passages.save_documents([SourceText("animal.md", text)])
        for container, text in zip(opened, ("The aardvark digs.", "The zebra runs."), strict=True):
            passages = (await container.workspaces.open("w")).passages
            found = await passages.retrieve("Does the aardvark dig, or does the zebra run?", limit=5)
            assert [document.content for document in found] == [text]
        for container in opened:
            await container.close()
            await container.database.close()


@pytest.fixture
def backend_of() -> Callable[[str], PostgresBackend]:
    return lambda uri: PostgresBackend(PostgresDatabase(PostgresAddress.parse(uri), most=2))


async def test_a_store_that_a_killed_process_was_building_is_removed(
    postgres: "Postgres", tmp_path: Path, backend_of: Callable[[str], PostgresBackend]
) -> None:
    with migrated(postgres) as uri:
        backend = backend_of(uri)
        abandoned = await backend.open_ledger(tmp_path / ".reindexing-w", "w", search_text=str.lower)
        built = await backend.open_ledger(tmp_path / ".copying-w", "w", search_text=str.lower)
        assert await built.driver.take_lease("copying", "a living process", 60) is not None
        await backend.sweep(tmp_path)
        assert not await backend.has_store(tmp_path / ".reindexing-w")
        assert await backend.has_store(tmp_path / ".copying-w")
        for ledger in (abandoned, built):
            ledger.driver.release()
        await backend.close()


async def test_a_store_that_got_its_lease_after_it_was_found_without_one_stays(
    postgres: "Postgres",
    tmp_path: Path,
    backend_of: Callable[[str], PostgresBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with migrated(postgres) as uri:
        backend = backend_of(uri)
        built = await backend.open_ledger(tmp_path / ".copying-w", "w", search_text=str.lower)
        found = await directory.abandoned_in(backend._database)
        assert found == [".copying-w"]
        monkeypatch.setattr(directory, "abandoned_in", AsyncMock(return_value=found))
        assert await built.driver.take_lease("copying", "a living process", 60) is not None
        await backend.sweep(tmp_path)
        assert await backend.has_store(tmp_path / ".copying-w")
        built.driver.release()
        await backend.close()


async def test_a_server_that_starts_sweeps_no_store_away_whose_model_is_being_opened(
    postgres: "Postgres", tmp_path: Path, backend_of: Callable[[str], PostgresBackend]
) -> None:
    with migrated(postgres) as uri:
        backend, another = backend_of(uri), backend_of(uri)

        async def model(_: str | None) -> LetterEmbedder:
            await another.sweep(tmp_path)
            return LetterEmbedder("small", 16)

        workspaces = embedded_workspaces(tmp_path, backend=backend, open_embedder=model, ranker=WordGrader())
        await (await workspaces.open("w")).passages.save_documents([SourceText("a.md", "A heat pump moves heat.")])
        assert await workspaces.reindex("w", lambda _: None) == 1
        await workspaces.close()
        for each in (backend, another):
            await each.close()


async def test_removing_a_workspace_removes_what_was_being_built_of_it(
    postgres: "Postgres", tmp_path: Path, backend_of: Callable[[str], PostgresBackend]
) -> None:
    with migrated(postgres) as uri:
        backend = backend_of(uri)
        container = Container(Settings(home=tmp_path), backend=backend)
        await (await container.workspaces.open("w")).passages.save_documents([SourceText("a.md", "A secret.")])
        (await backend.open_ledger(tmp_path / ".reindexing-w", "w", search_text=str.lower)).driver.release()
        assert await container.workspaces.remove("w")
        assert not await backend.has_store(tmp_path / ".reindexing-w")
        await container.close()
        await backend.close()
