"""The function as `sam local` serves it, with PostgreSQL and Neo4j of the compose file. Part of `make sam-e2e`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local import NETWORK
from tests.containers.engine import Engine, Failed
from tests.containers.images import Images
from tests.containers.report import say
from tests.containers.sam import Served, prepare, serving
from tests.containers.stack import PROJECT, Stack
from tests.services.requirement import stay_down
from tests.services.tools import Unavailable

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]

SHAPE = "tests/containers/databases.toml"
FACT = "The lamp of the Wreathen lighthouse is lit by Ada Grant, its keeper, at nine in the evening.\n"
QUESTION = "Who lights the lamp of the Wreathen lighthouse?"


@pytest.fixture(scope="module")
def databases(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """PostgreSQL with AGE and Neo4j, empty."""
    try:
        images = Images(engine).databases()
    except Unavailable as reason:
        stay_down(f"an image could not be built: {reason}", os.environ, "CONTAINERS")
    stack = Stack(engine, images, tmp_path_factory.mktemp("databases"))
    stack.down("--volumes")
    stack.compose("up", "--detach", "--no-build", "--wait", *images)
    yield stack
    stack.down("--volumes")


@pytest.fixture(scope="module")
def served(engine: Engine, databases: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The shape with PostgreSQL and Neo4j, with one document that this machine brought."""
    folder = tmp_path_factory.mktemp("sam")
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in databases.secrets.items()))
    try:
        sam = prepare(engine, folder, folder / ".env", ["-c", f"file={SHAPE}"])
    except (Unavailable, Failed) as reason:
        stay_down(f"sam local could not be had: {reason}", os.environ, "CONTAINERS")
    arguments = folder / "out/arguments"
    arguments.write_text(arguments.read_text().replace(NETWORK, f"{PROJECT}_stores"))
    _bring(engine, databases, folder)
    with serving(engine, folder, sam):
        yield Served(engine, databases.secrets["CRAGSIDE_API_TOKEN"])


def _bring(engine: Engine, databases: Stack, folder: Path) -> None:
    """Make the tables, and index the document."""
    enter, _ = engine.entering()
    places = {name: _address(databases, name) for name in ("postgres", "neo4j")}
    password = databases.secrets["CRAGSIDE_POSTGRES_PASSWORD"]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "POSTGRES", "NEO4J"))},
        "RAG_HOME": str(folder / "home"),
        "POSTGRES_URI": f"postgresql://cragside:{password}@{places['postgres']}:5432/cragside",
        "NEO4J_URI": f"bolt://{places['neo4j']}:7687",
        "NEO4J_USERNAME": "neo4j",
        "NEO4J_PASSWORD": databases.secrets["CRAGSIDE_NEO4J_PASSWORD"],
    }
    (folder / "lighthouse.md").write_text(FACT)
    program = str(Path(sys.executable).with_name("cragside"))
    for command in (["migrate"], ["ingest", str(folder / "lighthouse.md")]):
        done = subprocess.run(
            [*enter, program, *command], env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Unavailable(f"cragside {command[0]}: {done.stdout}{done.stderr}")


def _address(databases: Stack, service: str) -> str:
    networks = databases.container(service)["NetworkSettings"]["Networks"]
    return str(networks[f"{PROJECT}_stores"]["IPAddress"])


def test_a_question_is_answered_from_the_databases(served: Served) -> None:
    status, answer = served.ask(f"/rag {QUESTION}", served.token)
    assert status == 200, answer
    found = answer["metadata"]["rag_context"]
    say(f"with PostgreSQL and Neo4j, {QUESTION!r}: {status}, {found['verdict']}, {found['degraded']}")
    assert (found["verdict"], found["degraded"]) == ("local", [])
    assert "Ada Grant" in answer["prompt"]
