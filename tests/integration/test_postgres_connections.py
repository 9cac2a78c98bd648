"""Connections to PostgreSQL break, are cancelled and are used up, and heal by themselves."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import asyncpg
import pytest

from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.connections import CONNECT_SECONDS, FAILURES, meaning_of
from cragside.databases.postgres.database import PostgresDatabase
from tests.services.postgres import PostgresServer

if TYPE_CHECKING:
    from tests.services.pgbouncer import Pgbouncer

_OTHERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""

_COUNTED = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND backend_type = 'client backend' AND application_name <> 'counting'"""


@pytest.fixture
async def shared(database: str) -> AsyncIterator[PostgresDatabase]:
    opened = PostgresDatabase(PostgresAddress.parse(database), most=3)
    yield opened
    await opened.close()


async def cut(uri: str) -> None:
    """End all other connections to a database."""
    connection = await asyncpg.connect(uri)
    await connection.execute(_OTHERS)
    await connection.close()


async def connections(uri: str) -> int:
    """Count the connections of everybody but this function: the server sees its last one end a moment later."""
    connection = await asyncpg.connect(uri, server_settings={"application_name": "counting"})
    try:
        return int(await connection.fetchval(_COUNTED))
    finally:
        await connection.close()


async def test_nothing_connects_before_the_first_statement(shared: PostgresDatabase, database: str) -> None:
    assert await connections(database) == 0
    assert await shared.value("SELECT 1") == 1
    assert await connections(database) == 1


async def test_a_read_after_all_connections_broke_succeeds(shared: PostgresDatabase, database: str) -> None:
    await asyncio.gather(*(shared.value("SELECT pg_sleep(0.05)") for _ in range(3)))
    await cut(database)
    assert [await shared.value("SELECT 1") for _ in range(4)] == [1] * 4


async def test_a_transaction_begins_after_all_connections_broke(shared: PostgresDatabase, database: str) -> None:
    await asyncio.gather(*(shared.value("SELECT pg_sleep(0.05)") for _ in range(3)))
    await cut(database)
    for _ in range(4):
        async with shared.transaction():
            assert await shared.value("SELECT 1") == 1


async def test_a_transaction_whose_connection_breaks_fails_alone(shared: PostgresDatabase, database: str) -> None:
    async def broken() -> None:
        async with shared.transaction():
            await shared.value("CREATE TABLE half (n integer)")
            await shared.value("SELECT pg_terminate_backend(pg_backend_pid())")

    async def whole() -> int:
        async with shared.transaction():
            await shared.value("SELECT pg_sleep(0.2)")
            return int(await shared.value("SELECT 2"))

    failed, succeeded = await asyncio.gather(broken(), whole(), return_exceptions=True)
    assert isinstance(failed, FAILURES)
    assert succeeded == 2
    assert await shared.value("SELECT to_regclass('half')") is None


async def test_more_callers_than_connections_wait_for_each_other(shared: PostgresDatabase, database: str) -> None:
    answers = asyncio.gather(*(shared.value("SELECT pg_sleep(0.05), 1") for _ in range(30)))
    seen = 0
    while not answers.done():
        seen = max(seen, await connections(database))
    assert len(await answers) == 30
    assert 0 < seen <= 3


async def test_a_statement_that_takes_too_long_is_given_up(database: str) -> None:
    hasty = PostgresDatabase(PostgresAddress.parse(database), most=1, statement_seconds=0.2)
    with pytest.raises(FAILURES) as failed:
        await hasty.value("SELECT pg_sleep(60)")
    assert meaning_of(failed.value)[0] == "PostgreSQL does not answer"
    assert await hasty.value("SELECT 1") == 1
    await hasty.close()


async def test_a_server_that_is_silent_is_given_up_soon() -> None:
    async def listens(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)
        writer.close()

    server = await asyncio.start_server(listens, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    silent = PostgresDatabase(PostgresAddress.parse(f"postgresql://u:p@127.0.0.1:{port}/d?sslmode=disable"), most=1)
    async with asyncio.timeout(3 * CONNECT_SECONDS):
        with pytest.raises(FAILURES):
            await silent.value("SELECT 1")
    server.close()


async def test_after_a_restart_of_the_server_requests_succeed_again(
    started: Callable[[str, Callable[[], PostgresServer]], PostgresServer],
) -> None:
    server = started("postgres", PostgresServer)
    database = PostgresDatabase(PostgresAddress.parse(server.uri), most=2)
    assert await database.value("SELECT 1") == 1
    await asyncio.to_thread(server.stop)
    with pytest.raises(FAILURES) as failed:
        await database.value("SELECT 1")
    assert meaning_of(failed.value)[0] == "PostgreSQL does not answer"
    await asyncio.to_thread(server.start)
    assert await database.value("SELECT 1") == 1
    await database.close()


async def test_a_pooler_that_keeps_no_statements_is_named_with_the_remedy(
    pgbouncer: "Pgbouncer", database: str
) -> None:
    uri = f"{pgbouncer.through(database)}?statement_cache_size=100"
    pooled = PostgresDatabase(PostgresAddress.parse(uri), most=2)
    async with pooled.connection() as one, pooled.connection() as another:
        await one.fetchval("SELECT 1")
        # The session that has just been used is the first to be given away.
        async with another.transaction():
            await another.execute("SELECT 2")
            with pytest.raises(FAILURES) as failed:
                await one.fetchval("SELECT 1")
    assert "statement_cache_size=0" in meaning_of(failed.value)[1]
    await pooled.close()
