"""The databases that have to keep the same contract."""

import asyncio
import os
import uuid
from collections.abc import Iterator

import asyncpg
import pytest

from cragside.adapters.lightrag.backends.interface import Backend
from cragside.adapters.lightrag.backends.memory import MemoryBackend
from cragside.adapters.lightrag.backends.postgres import PostgresBackend
from cragside.adapters.lightrag.backends.sqlite import SqliteBackend
from cragside.adapters.lightrag.ledger.postgres.schema import migrate
from cragside.adapters.postgres.address import PostgresAddress
from cragside.adapters.postgres.database import PostgresDatabase

BACKENDS: dict[str, type[Backend]] = {"memory": MemoryBackend, "sqlite": SqliteBackend}
SERVER = os.environ.get("CRAGSIDE_TEST_POSTGRES", "")
NAMES = [*BACKENDS, *(["postgres"] if SERVER else [])]


async def _template() -> None:
    connection = await asyncpg.connect(f"{SERVER}/postgres")
    try:
        await connection.execute("CREATE DATABASE cragside_template")
    except asyncpg.DuplicateDatabaseError:
        return
    finally:
        await connection.close()
    database = PostgresDatabase(PostgresAddress.parse(f"{SERVER}/cragside_template"), most=1)
    await migrate(database)
    await database.close()


async def _fresh(name: str) -> None:
    connection = await asyncpg.connect(f"{SERVER}/postgres")
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE cragside_template STRATEGY file_copy")
    await connection.close()


async def _drop(name: str) -> None:
    connection = await asyncpg.connect(f"{SERVER}/postgres")
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await connection.close()


def _made(name: str) -> Iterator[Backend]:
    if name != "postgres":
        yield BACKENDS[name]()
        return
    asyncio.run(_template())
    database = f"t_{uuid.uuid4().hex[:12]}"
    asyncio.run(_fresh(database))
    yield PostgresBackend(PostgresDatabase(PostgresAddress.parse(f"{SERVER}/{database}"), most=5))
    asyncio.run(_drop(database))


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A new database of each kind."""
    yield from _made(request.param)


@pytest.fixture(scope="module", params=NAMES)
def shared_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A database of each kind that all tests of a module share."""
    yield from _made(request.param)
