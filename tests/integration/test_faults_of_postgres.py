"""All reports on a PostgreSQL that refuses cragside name the fault, its cause and the remedy."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from cragside.bootstrap import Container
from cragside.settings import load_settings
from tests.services.backends import migrated
from tests.services.postgres import Postgres
from tests.told import SECRET, check, told_of

EVERYWHERE = ("postgres", "knowledge_base", "store")
RIGHTS = "in docs/postgresql.md."


@pytest.fixture
async def role(postgres: Postgres) -> AsyncIterator[str]:
    """A role that may only connect. Its password is its name."""
    name = f"told_{os.getpid()}"
    with migrated(postgres) as uri:
        admin = await asyncpg.connect(uri)
        await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}'")
        yield name
        await admin.execute(f"DROP ROLE {name}")
        await admin.close()


@pytest.mark.parametrize(
    ("change", "sql", "names", "cause", "remedy"),
    [
        ("password", "", EVERYWHERE, "refuses the user or the password in POSTGRES_URI.", "with pg_hba.conf."),
        ("database", "", EVERYWHERE, "POSTGRES_URI names is not there.", "Create it, or correct POSTGRES_URI."),
        ("role", "", ("postgres", None, None), "its role may not use", RIGHTS),
        ("role", "", ("store", "knowledge_base", "store"), "may not be used by the role in POSTGRES_URI.", RIGHTS),
        ("", "DROP SCHEMA crag CASCADE", ("postgres", None, None), "its tables are missing", "Run `cragside migrate`."),
        ("", "DROP SCHEMA crag CASCADE", ("store", "queue", "queue"), "has no tables yet.", "Run `cragside migrate`."),
        (
            "",
            "DROP EXTENSION vector CASCADE",
            ("postgres", None, None),
            "pgvector is missing",
            "CREATE EXTENSION vector",
        ),
    ],
)
async def test_whoever_tells_of_postgresql_tells_cause_and_remedy_and_no_secret(
    postgres: Postgres,
    role: str,
    change: str,
    sql: str,
    names: tuple[str, str | None, str | None],
    cause: str,
    remedy: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with migrated(postgres) as uri:
        parts = urlsplit(uri)
        place = parts.netloc.rpartition("@")[2]
        uris = {
            "password": urlunsplit(parts._replace(netloc=f"{role}:{SECRET}@{place}")),
            "database": urlunsplit(parts._replace(path=f"/{SECRET}")),
            "role": urlunsplit(parts._replace(netloc=f"{role}:{role}@{place}")),
        }
        if sql:
            admin = await asyncpg.connect(uri)
            await admin.execute(sql)
            await admin.close()
        settings = load_settings({"RAG_HOME": str(tmp_path), "POSTGRES_URI": uris.get(change, uri)})
        told = await told_of(Container(settings), caplog)
    check(told, names, cause, remedy)
