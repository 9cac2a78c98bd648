"""The pool of connections to PostgreSQL: hung servers, cancelled requests, crowds, event loops and poolers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit, urlunsplit

import pytest

from cragside.databases.postgres import connections
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import AllBusy
from cragside.databases.postgres.database import PostgresDatabase
from tests.services.pgbouncer import Pgbouncer
from tests.services.postgres import PostgresServer
from tests.services.way import Way

Opened = Callable[..., PostgresDatabase]
_SLEEPERS = """SELECT count(*) FROM pg_stat_activity
    WHERE query LIKE '%pg_sleep(61)%' AND state = 'active' AND pid <> pg_backend_pid()"""
_MINE = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    """Opens databases, and closes them at the end."""
    made: list[PostgresDatabase] = []

    def open_one(uri: str, *, most: int = 3, wait_seconds: float = 10.0) -> PostgresDatabase:
        made.append(PostgresDatabase(PostgresAddress.parse(uri), most=most, wait_seconds=wait_seconds))
        return made[-1]

    yield open_one
    for database in made:
        await database.close()


async def _idle(database: PostgresDatabase, count: int) -> None:
    """Open some connections, all of which are idle then."""
    together = asyncio.Barrier(count)

    async def one() -> None:
        async with database.connection() as connection:
            await together.wait()
            await connection.fetchval("SELECT 1")

    await asyncio.gather(*(one() for _ in range(count)))


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not await condition():  # type: ignore[misc]
            await asyncio.sleep(0.01)


async def _in_transaction(database: PostgresDatabase) -> object:
    async with database.transaction():
        return await database.value("SELECT 1")


async def test_a_server_that_hangs_costs_a_request_its_own_time_and_all_is_well_when_it_goes_on(
    started: Callable[..., PostgresServer], opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.2)
    server = started("postgres", PostgresServer)
    mine = opened(server.uri)
    await _idle(mine, 3)
    server.pause()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), mine.transaction():
            await mine.value("SELECT 1")
    with pytest.raises(TimeoutError):  # a new connection, as the idle ones are given up
        await mine.value("SELECT 1")
    server.resume()
    assert await asyncio.gather(*(_in_transaction(mine) for _ in range(5))) == [1] * 5


async def test_connections_that_were_lost_in_a_silence_are_replaced_within_a_moment(
    database: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = urlsplit(database)
    async with Way(parts.port or 0) as way:
        mine = opened(urlunsplit(parts._replace(netloc=parts.netloc.replace(str(parts.port), str(way.port)))), most=2)
        await _idle(mine, 2)
        monkeypatch.setattr(connections, "QUIET_SECONDS", 0.0)
        monkeypatch.setattr(connections, "SIGN_SECONDS", 0.2)
        for use in (lambda: mine.value("SELECT 1"), lambda: _in_transaction(mine)):
            way.lose()
            assert await use() == 1
            assert await asyncio.gather(use(), use()) == [1, 1]


@pytest.mark.parametrize("pooled", [False, pytest.param(True, marks=pytest.mark.services("pgbouncer"))])
async def test_a_cancelled_request_ends_its_statement_on_the_server_and_leaves_the_connection(
    database: str, opened: Opened, request: pytest.FixtureRequest, *, pooled: bool
) -> None:
    uri = request.getfixturevalue("pgbouncer").through(database) if pooled else database
    mine, watching = opened(uri, most=1), opened(database, most=1)
    pid = await mine.value("SELECT pg_backend_pid()")
    for slow in (lambda: mine.value("SELECT pg_sleep(61)"), lambda: _sleeping(mine)):
        running = asyncio.create_task(slow())
        await _until(lambda: watching.value(_SLEEPERS))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await watching.value(_SLEEPERS) == 0
        assert await mine.value("SELECT pg_backend_pid()") == pid


async def _sleeping(database: PostgresDatabase) -> object:
    async with database.transaction():
        return await database.value("SELECT pg_sleep(61)")


async def test_callers_beyond_the_connections_wait_and_are_told_when_that_takes_too_long(
    database: str, opened: Opened
) -> None:
    uri = f"{database}?application_name=crowd"
    mine, watching = opened(uri, most=2), opened(database, most=1)
    assert await asyncio.gather(*(mine.value("SELECT 1 FROM pg_sleep(0.001)") for _ in range(50))) == [1] * 50
    assert await watching.value(_MINE, "crowd") == 2
    impatient = opened(database, most=1, wait_seconds=0.05)
    async with impatient.transaction():
        with pytest.raises(AllBusy):
            await asyncio.create_task(_from_outside(impatient))
    assert await impatient.value("SELECT 1") == 1


async def _from_outside(database: PostgresDatabase) -> object:
    """In a task that began before the transaction, a statement is no part of it."""
    import contextvars

    return await contextvars.Context().run(asyncio.create_task, database.value("SELECT 1"))


async def test_no_connection_leaks_whatever_happens_to_its_users(database: str, opened: Opened) -> None:
    mine, watching = opened(f"{database}?application_name=leaks", most=3), opened(database, most=1)

    async def used(number: int) -> None:
        async with mine.transaction():
            await mine.value("SELECT 1")
            if number % 4 == 0:
                raise LookupError
            if number % 4 == 1:
                await mine.value("SELECT 1 / 0")
            await mine.value("SELECT pg_sleep($1)", 0.0 if number % 4 == 2 else 61.0)

    tasks = [asyncio.create_task(used(number)) for number in range(40)]
    for task in tasks:
        await asyncio.wait([task], timeout=0.02)
        task.cancel()
    await asyncio.wait(tasks)
    await _idle(mine, 3)  # all of them can be had at the same time
    assert await watching.value(_MINE, "leaks") == 3
    assert await watching.value(f"{_MINE} AND state LIKE 'idle in transaction%'", "leaks") == 0


async def test_a_request_that_is_cancelled_while_it_connects_leaves_no_connection(
    database: str, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, watching = opened(f"{database}?application_name=cancelled"), opened(database, most=1)
    await watching.value("SELECT 1")
    monkeypatch.setattr(connections, "_bounds", lambda _: "SELECT pg_sleep(61)")
    running = asyncio.create_task(mine.value("SELECT 1"))
    await _until(lambda: watching.value(_SLEEPERS))
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as error:
        await running
    # The server looks for its client when a statement ends.
    await watching.value("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'cancelled'")
    await _until(lambda: watching.value(f"SELECT ({_MINE}) = 0", "cancelled"))
    del error  # whoever keeps it keeps what the request had


async def test_a_second_event_loop_gets_connections_of_its_own(database: str, opened: Opened) -> None:
    mine = PostgresDatabase(PostgresAddress.parse(database), most=1)

    async def asked() -> object:
        return await mine.value("SELECT 1")

    for _ in range(2):
        assert await asyncio.to_thread(asyncio.run, asked()) == 1


async def test_statements_through_a_pooler_that_keeps_none_are_never_mixed_up(
    database: str, pgbouncer: Pgbouncer, opened: Opened
) -> None:
    # Two processes' worth of clients share fewer sessions.
    clients = [opened(pgbouncer.through(database), most=4) for _ in range(3)]

    async def asked(client: PostgresDatabase, number: int) -> None:
        for turn in range(5):
            assert await client.value(f"SELECT {number} + $1::integer", turn) == number + turn
            async with client.transaction():
                assert await client.value(f"SELECT {number} * $1::integer", turn) == number * turn

    await asyncio.gather(*(asked(client, 10 * number) for client in clients for number in range(8)))


async def test_the_server_itself_is_told_from_a_pooler(database: str, pgbouncer: Pgbouncer, opened: Opened) -> None:
    kept = "SELECT count(*) FROM pg_prepared_statements"
    direct, pooled = opened(database, most=1), opened(pgbouncer.through(database), most=1)
    trusting = opened(f"{database}?statement_cache_size=0", most=1)
    assert [await direct.value(kept) for _ in range(2)] == [1, 1]
    assert [await pooled.value(kept) for _ in range(2)] == [0, 0]
    assert [await trusting.value(kept) for _ in range(2)] == [0, 0]


def test_nothing_of_postgresql_is_imported_without_its_address() -> None:
    program = "import sys; from cragside.bootstrap import Container; from cragside.settings import load_settings;"
    program += "Container(load_settings({})).build(); print('asyncpg' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert found.stdout.strip() == "False"
