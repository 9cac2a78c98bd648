"""The commands on PostgreSQL and Neo4j, as docs/neo4j.md shows them."""

import json
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from cragside.databases.neo4j import Neo4jDatabase
from cragside.databases.server_addresses import Neo4jAddress
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.integration.test_on_postgres import cragside
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres

NOTE = "# Heat pump\n\nA heat pump moves heat from a cold place to a warm one. Lord Kelvin described it in Glasgow."


async def test_a_graph_is_made_shown_lost_and_repaired(
    postgres: "Postgres", neo4j: "Neo4j", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "pump.md"
    note.write_text(NOTE)
    monkeypatch.setenv("NEO4J_URI", neo4j.uri)
    graphs = Neo4jDatabase(Neo4jAddress.parse(neo4j.uri), most=1)
    with migrated(postgres) as uri:

        def run(*arguments: str) -> Any:
            return cragside(uri, tmp_path / "home", *arguments)

        assert run("ingest", str(note)).returncode == 0
        label = json.loads(run("status", "--json").stdout)["lightrag_workspace"]
        try:
            assert await graphs.rows(f"MATCH (node:`{label}`) RETURN count(node) > 2") == [[True]]
            shown = run("graph", "Lord Kelvin", "--json").stdout
            assert json.loads(shown)["connections"]
            await graphs.execute(f"MATCH (node:`{label}`) DETACH DELETE node")
            assert "Run `cragside repair`" in run("doctor").stdout
            assert run("repair", "--check").returncode == 1
            assert "built anew from 1 text" in run("repair").stdout
            examined = run("doctor")
            assert (examined.returncode, "neo4j            ok" in examined.stdout) == (0, True)
            assert json.loads(run("graph", "Lord Kelvin", "--json").stdout)["connections"]
        finally:
            run("workspaces", "remove", "default", "--yes")
        assert await graphs.rows(f"MATCH (node:`{label}`) RETURN count(node)") == [[0]]
    await graphs.close()


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("http://graphs:7474", "begin it with neo4j://"),
        ("neo4j://", "name the host"),
        ("neo4j://user:hush@graphs/movies", "NEO4J_DATABASE"),
        ("neo4j://user:hush@graphs:bolt", "port"),
        ("neo4j://graphs", "NEO4J_USERNAME"),
    ],
)
def test_a_wrong_address_is_an_error_that_keeps_the_password(tmp_path: Path, uri: str, said: str) -> None:
    given = {"RAG_HOME": str(tmp_path), "POSTGRES_URI": "postgresql://u:p@127.0.0.1:9/d", "NEO4J_URI": uri}
    failed = CliRunner().invoke(app, ["status"], obj=Session(environment=given, folder=tmp_path))
    assert failed.exit_code == 2
    assert said in failed.stderr
    assert "hush" not in failed.output + "".join(format_exception(failed.exception))


def test_a_wrong_password_is_named_without_it(
    postgres: "Postgres", neo4j: "Neo4j", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEO4J_URI", f"bolt://neo4j:hush-hush@{neo4j.uri.rpartition('@')[2]}")
    with migrated(postgres) as uri:
        examined = cragside(uri, tmp_path / "home", "doctor")
        assert "is refused by Neo4j. -> Check NEO4J_USERNAME" in " ".join(examined.stdout.split())
        assert "hush-hush" not in examined.stdout + examined.stderr
