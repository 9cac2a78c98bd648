"""The commands on PostgreSQL, as docs/postgresql.md shows them."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from traceback import format_exception
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from typer.testing import CliRunner

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.blocks import blocks
from tests.services.backends import migrated
from tests.services.postgres import Postgres

PAGE = "docs/postgresql.md"
NOTE = "# Heat pump\n\nA heat pump moves heat from a cold place to a warm one. Lord Kelvin described it in 1852."


def cragside(uri: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command on a machine of its own: `home` is its RAG_HOME."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "OLLAMA", "SEARXNG"))}
    return subprocess.run(
        [sys.executable, "-c", "from cragside.entrypoints.cli.main import main; main()", *arguments],
        env={**kept, "POSTGRES_URI": uri, "RAG_HOME": str(home), "PYTHONPATH": ":".join(sys.path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        cwd=home.parent,
        timeout=120,
        check=False,
    )


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / "pump.md"
    path.write_text(NOTE)
    return path


async def as_role(uri: str, name: str) -> str:
    """The address for a role that has got the rights that the page shows."""
    (*_, rights) = blocks(PAGE, "sql")
    statements = rights.text.replace("ROLE rag", f"ROLE {name}").replace("TO rag", f"TO {name}")
    connection = await asyncpg.connect(uri)
    await connection.execute(statements)
    await connection.close()
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=f"{name}:choose%20one@{parts.netloc.rpartition('@')[2]}"))


async def drop_role(uri: str, name: str) -> None:
    connection = await asyncpg.connect(uri)
    await connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    await connection.close()


async def test_tables_are_made_once_and_what_one_machine_indexes_another_finds(
    database: str, tmp_path: Path, note: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    before = cragside(database, one, "status")
    assert before.returncode == 3
    assert "Run `cragside migrate`" in before.stderr
    migrations = await asyncio.gather(*(asyncio.to_thread(cragside, database, one, "migrate") for _ in range(8)))
    told = sorted(each.stdout.split(":")[0] for each in migrations)
    assert told == ["Made the tables", *["The tables are there"] * 7]
    assert cragside(database, one, "ingest", str(note)).returncode == 0
    found = json.loads(cragside(database, other, "query", "Who described the heat pump?", "--json").stdout)
    assert "Lord Kelvin" in json.dumps(found)
    examined = cragside(database, other, "doctor")
    assert examined.returncode == 0
    assert "workspace default: 1 document" in examined.stdout


async def test_a_role_without_rights_to_make_tables_indexes_and_finds(
    postgres: Postgres, tmp_path: Path, note: Path
) -> None:
    with migrated(postgres) as uri:
        assert cragside(uri, tmp_path / "owner", "migrate").returncode == 0
        name = f"rag_{os.getpid()}"
        role = await as_role(uri, name)
        try:
            connection = await asyncpg.connect(role)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("CREATE TABLE crag.mine (n integer)")
            await connection.close()
            indexed = cragside(role, tmp_path / "server", "ingest", str(note))
            assert (indexed.returncode, indexed.stderr) == (0, "")
            assert "Lord Kelvin" in cragside(role, tmp_path / "server", "query", "heat pump").stdout
        finally:
            await drop_role(uri, name)


async def test_what_makes_a_store_of_its_own_leaves_the_database_alone(
    postgres: Postgres, tmp_path: Path, note: Path
) -> None:
    with migrated(postgres) as uri:
        home = tmp_path / "home"
        baked = cragside(uri, home, "bake", str(note), "--out", str(tmp_path / "baked"))
        assert (baked.returncode, baked.stderr) == (0, "")
        assert cragside(uri, home, "demo").returncode == 0
        assert json.loads(cragside(uri, home, "workspaces", "list", "--json").stdout) == []


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("postgresql://user:secret@127.0.0.1:1/knowledge", "PostgreSQL does not answer"),
        ("postgres:knowledge", "name the host"),
        ("mysql://user:secret@127.0.0.1/knowledge", "begin it with postgresql://"),
        ("postgresql://user:secret@127.0.0.1", "name the database"),
        ("postgresql://user:secret@127.0.0.1/knowledge?sslmode=always", "sslmode has to be one of"),
        ("postgresql://user:secret@127.0.0.1/knowledge?pool=9", "pool is no option"),
    ],
)
def test_a_wrong_address_is_told_without_the_password(uri: str, said: str, tmp_path: Path) -> None:
    for command in ("status", "migrate", "doctor"):
        session = Session(environment={"RAG_HOME": str(tmp_path / "home"), "POSTGRES_URI": uri}, folder=tmp_path)
        ran = CliRunner().invoke(app, [command], obj=session)
        assert ran.exit_code
        assert said in ran.output
        assert "secret" not in ran.output + "".join(format_exception(ran.exception))
