"""`cragside copy`, on real stores."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_services import RealCommands
from typer.testing import CliRunner

from cragside.domain.indexing import QueueStats
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.knowledge import leave_to_the_worker
from tests.served import Served
from tests.services.backends import migrated

QUESTION = "What do sea otters eat?"


@pytest.fixture
def filled(real: RealCommands, tmp_path: Any) -> RealCommands:
    note = tmp_path / "otter.md"
    note.write_text("Sea otters eat urchins, crabs and clams.")
    assert real("ingest", str(note), "--workspace", "sea").exit_code == 0
    said = ("--user", "What do sea otters eat in winter?", "--assistant", "They eat urchins, crabs and clams.")
    assert real("memory", "add", *said, "--workspace", "sea").exit_code == 0
    return real


@pytest.fixture
def run(real: RealCommands, tmp_path: Any) -> Callable[..., Any]:
    def invoke(*arguments: object, **environment: str) -> Any:
        session = Session(environment={"RAG_HOME": str(real.home), **environment}, folder=tmp_path)
        return CliRunner().invoke(app, list(map(str, arguments)), obj=session)

    return invoke


def found(run: Callable[..., Any], **environment: str) -> tuple[Any, Any]:
    evidence = json.loads(run("enrich", "--json", f"/rag {QUESTION}", RAG_WORKSPACE="sea", **environment).stdout)
    context = evidence["metadata"]["rag_context"]
    (row,) = json.loads(run("workspaces", "list", "--json", **environment).stdout)
    return [(each["id"], each["content"]) for each in context["documents"]], row


def test_a_workspace_is_copied_to_another_folder(filled: RealCommands, run: Callable[..., Any], tmp_path: Any) -> None:
    there = {"RAG_HOME": str(tmp_path / "there")}
    result = run("copy", "--to", tmp_path / "there", "-w", "sea")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "copied    sea: 2 texts\n", "")
    assert found(run, **there) == found(run)
    assert not list((tmp_path / "there").glob(".copying-*"))


def test_what_is_there_is_replaced_on_demand_alone(
    filled: RealCommands, run: Callable[..., Any], tmp_path: Any
) -> None:
    there = tmp_path / "there"
    assert run("copy", "--to", there, "--all").exit_code == 0
    other = tmp_path / "whale.md"
    other.write_text("Whales eat krill.")
    assert filled("ingest", str(other), "--workspace", "sea").exit_code == 0
    result = run("copy", "--to", there, "-w", "sea")
    assert (result.exit_code, "Pass --replace" in result.stderr) == (2, True)
    result = run("copy", "--to", there, "-w", "sea", "--replace")
    assert (result.exit_code, "pass --yes" in result.stderr) == (2, True)
    before = found(run, RAG_HOME=str(there))
    assert before[1]["documents"] == 1
    result = run("copy", "--to", there, "-w", "sea", "--replace", "--yes", "--json")
    assert json.loads(result.stdout) == [{"workspace": "sea", "documents": 3}]
    assert found(run, RAG_HOME=str(there)) == found(run) != before


@pytest.fixture
def waiting(real: RealCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a document that waits to be indexed."""
    leave_to_the_worker(monkeypatch)
    note = tmp_path / "whale.md"
    note.write_text("Whales eat krill.")
    assert real("ingest", str(note), "--workspace", "sea", "--no-wait").exit_code == 0
    (document,) = real.json("documents", "--workspace", "sea")["documents"]
    assert document["status"] == "pending"
    return str(document["id"])


def test_what_waits_in_a_copy_is_indexed_by_a_service_that_runs(
    real: RealCommands, run: Callable[..., Any], served: Served, waiting: str, tmp_path: Path
) -> None:
    def document() -> Any:
        shown = run("documents", "--json", RAG_WORKSPACE="sea", RAG_HOME=str(tmp_path / "served"))
        return json.loads(shown.stdout)["documents"][0]

    # Its worker looked for documents without tasks when it began.
    here = ("--api", served.address, "--workspace", "sea")
    (tmp_path / "otter.md").write_text("Sea otters eat urchins.")
    assert run("ingest", tmp_path / "otter.md", *here, RAG_API_TOKEN="secret").exit_code == 0
    result = run("copy", "--to", tmp_path / "served", "--all", "--replace", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    deadline = time.monotonic() + 30
    while document()["status"] != "enriched" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (document()["id"], document()["status"]) == (waiting, "enriched")


def test_what_waits_in_a_copy_waits_in_the_queue_of_its_place(
    real: RealCommands, run: Callable[..., Any], waiting: str, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    # Nothing answers there, and the queue is not that of a folder.
    elsewhere = "https://sqs.eu-central-1.amazonaws.com/1/index.fifo"
    assert run("copy", "--to", there, "--all", RAG_QUEUE_URL=elsewhere).exit_code == 0

    async def queued() -> QueueStats:
        container = RealCommands(there).container()
        try:
            return await container.queue.stats()
        finally:
            await container.close()

    assert asyncio.run(queued()) == QueueStats(pending=2, processing=0, dead=0)


def test_a_store_is_not_copied_into_itself(filled: RealCommands, run: Callable[..., Any]) -> None:
    result = run("copy", "--to", filled.home / "backup", "--all")
    assert (result.exit_code, "is a folder in the store that is copied" in result.stderr) == (2, True)
    assert not (filled.home / "backup").exists()


def test_nothing_is_copied_if_the_targets_queue_is_damaged(
    filled: RealCommands, run: Callable[..., Any], tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / ".queue.sqlite3").write_bytes(b"damaged" * 1000)
    result = run("copy", "--to", there, "--all")
    assert (result.exit_code, "queue" in result.stderr) == (3, True)
    assert [path.name for path in there.iterdir() if path.is_dir()] == []


def test_a_baked_store_can_be_copied_but_nothing_to_it(
    filled: RealCommands, run: Callable[..., Any], tmp_path: Any
) -> None:
    baked, there = tmp_path / "baked", tmp_path / "there"
    assert run("bake", tmp_path / "otter.md", "--out", baked, "-w", "sea").exit_code == 0
    assert run("copy", "--from", baked, "--to", there, "-w", "sea").exit_code == 0
    assert found(run, RAG_HOME=str(there)) == found(run, RAG_HOME=str(baked))
    result = run("copy", "--to", baked, "-w", "sea", "--replace", "--yes")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "THERE"), "names the variable THERE"),
        (("--to", "mysql://host/name"), "is no place"),
        ((), "are the same place"),
        (("--to", "there", "-w", "x", "--all"), "not both"),
        (("--to", "there", "-w", "nowhere"), "no workspace nowhere"),
        (("--from", "nowhere", "--to", "there", "--all"), "nowhere. Check --from"),
    ],
)
def test_what_cannot_be_copied_is_said(run: Callable[..., Any], arguments: tuple[str, ...], said: str) -> None:
    result = run("copy", *arguments)
    assert result.exit_code in (1, 2)
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.services("postgres")
def test_a_workspace_goes_to_postgresql_and_comes_back(
    filled: RealCommands, run: Callable[..., Any], tmp_path: Any, postgres: Any
) -> None:
    with migrated(postgres) as uri:
        result = run("copy", "--to", "TEAM", "-w", "sea", TEAM=uri)
        assert (result.exit_code, result.stdout, result.stderr) == (0, "copied    sea: 2 texts\n", "")
        assert found(run, POSTGRES_URI=uri) == found(run)
        back = tmp_path / "back"
        # What is configured is the source by default.
        result = run("copy", "--to", back, "--all", POSTGRES_URI=uri, RAG_GRAPH_STORAGE="PGTableGraphStorage")
        assert (result.exit_code, result.stderr) == (0, "")
        assert found(run, RAG_HOME=str(back)) == found(run)
        baked = tmp_path / "baked"
        result = run("bake", "--from", "TEAM", "--out", baked, "-w", "sea", TEAM=uri)
        assert (result.exit_code, result.stderr) == (0, "")
        assert found(run, RAG_HOME=str(baked))[0] == found(run)[0]


def test_a_store_is_baked_as_it_is(filled: RealCommands, run: Callable[..., Any], tmp_path: Any) -> None:
    baked = tmp_path / "baked"
    result = run("bake", "--from", filled.home, "--out", baked, "-w", "sea")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("1 document copied. Workspace sea baked into")
    (before, _), (after, row) = found(run), found(run, RAG_HOME=str(baked))
    assert after == before
    assert (row["documents"], row["exchanges"]) == (1, 0)
    assert sorted(path.name for path in baked.iterdir()) == ["baked.json", "sea"]


def test_what_is_not_indexed_yet_is_not_baked(
    real: RealCommands, run: Callable[..., Any], waiting: str, tmp_path: Any
) -> None:
    result = run("bake", "--from", real.home, "--out", tmp_path / "baked", "-w", "sea")
    assert (result.exit_code, "not indexed yet" in result.stderr) == (2, True)
    assert not (tmp_path / "baked").exists()


def test_bake_wants_either_files_or_a_place(run: Callable[..., Any], tmp_path: Any) -> None:
    result = run("bake", "--out", tmp_path / "baked")
    assert (result.exit_code, "--from" in result.stderr) == (2, True)
