"""Setting PostgreSQL up: what opening a workspace costs, who may make the tables, and tables of other versions."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from cragside.bootstrap import Container
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.settings import Settings
from cragside.store.backends.postgres_tables import is_complete, migrate
from cragside.store.errors import LedgerError
from cragside.store.postgres.schema import install_age
from tests.services.backends import migrated
from tests.services.postgres import Postgres
from tests.services.statements import CountingDatabase


def opened(uri: str, home: Path) -> tuple[CountingDatabase, Container]:
    database = CountingDatabase(PostgresAddress.parse(uri), most=2)
    return database, Container(Settings(home=home), database=database)


async def test_opening_a_workspace_takes_one_statement_after_finding_it(postgres: Postgres, tmp_path: Path) -> None:
    with migrated(postgres) as uri:
        database, container = opened(uri, tmp_path)
        await container.intake.text(SourceText("otters.md", "Sea otters eat urchins."), workspace="zoo")
        await container.close()
        await database.close()
        database, container = opened(uri, tmp_path)
        with database.counted() as statements:
            await container.workspaces.prepare("zoo")
        assert [each.partition(" ")[0] for each in statements] == ["SELECT"] * 3
        assert "FROM crag.store WHERE workspace" in statements[0]  # whether it is there
        assert "starts_with(workspace" in statements[2]  # at the start of a server, what others left halfway
        await container.close()
        await database.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE crag.schema_version SET version = version + 1", "Update cragside"),
        ("UPDATE crag.schema_version SET version = version - 1", "Run cragside migrate"),
        ("DROP SCHEMA crag CASCADE", "Run `cragside migrate`"),
    ],
)
async def test_tables_of_another_version_are_told_with_what_to_do(
    postgres: Postgres, tmp_path: Path, change: str, said: str
) -> None:
    with migrated(postgres) as uri:
        database, container = opened(uri, tmp_path)
        await database.value(change)
        with pytest.raises(ServiceUnavailable, match=said):
            await container.intake.text(SourceText("otters.md", "Sea otters eat urchins."), workspace="zoo")
        await container.close()
        await database.close()


async def test_a_check_makes_nothing_and_knows_the_tables_of_a_model(database: str) -> None:
    mine = PostgresDatabase(PostgresAddress.parse(database), most=1)
    assert not await is_complete(mine, model="embedded", dimensions=256)
    assert await mine.value("SELECT to_regclass('crag.store')") is None
    await migrate(mine, model="embedded", dimensions=256)
    assert await is_complete(mine, model="embedded", dimensions=256)
    assert not await is_complete(mine, model="another", dimensions=768)
    await mine.close()


@pytest.fixture
async def guest(database: str) -> AsyncIterator[str]:
    """The address for a role that may only connect."""
    name = f"guest_{os.getpid()}"
    admin = await asyncpg.connect(database)
    await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
    parts = urlsplit(database)
    yield urlunsplit(parts._replace(netloc=f"{name}:secret@{parts.netloc.rpartition('@')[2]}"))
    await admin.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    await admin.close()


async def test_a_role_that_may_not_make_age_is_told_who_has_to(database: str, guest: str) -> None:
    admin = await asyncpg.connect(database)
    await admin.execute("DROP EXTENSION vector")  # stands for AGE, which not every server of the tests has
    await admin.close()
    role = await asyncpg.connect(guest)
    with pytest.raises(LedgerError, match="the extension AGE for PGGraphStorage: have a superuser run CREATE EXT"):
        await install_age(role, "vector")
    await role.close()


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("DROP EXTENSION vector", "have a superuser run CREATE EXTENSION vector;"),
        ("SELECT 1", "run cragside migrate as a role that has CREATE"),
    ],
)
async def test_a_role_that_may_not_make_tables_is_told_who_has_to(
    database: str, guest: str, before: str, said: str
) -> None:
    admin = await asyncpg.connect(database)
    await admin.execute(before)
    await admin.close()
    mine = PostgresDatabase(PostgresAddress.parse(guest), most=1)
    with pytest.raises(LedgerError, match=said):
        await migrate(mine)
    assert await mine.value("SELECT to_regnamespace('crag')") is None
    await mine.close()
