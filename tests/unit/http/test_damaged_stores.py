"""Damaged stores: `/health`, `cragside status` and `cragside doctor` name them, and nobody else's store suffers."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.knowledge import Knowledge

WORDS = " ".join(f"otter{number} urchin{number} kelp" for number in range(400))


def _garbage_in_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for page in range(8, len(content) // 4096, 2):
        content[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    path.write_bytes(content)


def _without_a_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE chunk")


def _replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut within its header": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "garbage at its beginning": lambda path: path.write_bytes(b"\xa5" * 4096 + path.read_bytes()[4096:]),
    "garbage in its middle": _garbage_in_the_middle,
    "garbage all over": lambda path: path.write_bytes(b"\xa5" * path.stat().st_size),
    "without a table": _without_a_table,
    "empty": lambda path: path.write_bytes(b""),
    "a folder": _replaced_by_a_folder,
}
# What can happen to a file that is open, without SQLite's noticing at once.
WHILE_OPEN = [kind for kind in DAMAGES if kind != "without a table"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled")
    knowledge = Knowledge(home)
    for workspace in ("default", "other"):
        await knowledge.add("otter.md", WORDS, workspace=workspace, enrich=False)
    await knowledge.index()
    await knowledge.close()
    return home


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Iterator[Path]:
    yield shutil.copytree(filled, tmp_path / "home")
    shutil.rmtree(tmp_path / "home")


async def is_told(knowledge: Knowledge, place: Path) -> None:
    for _ in range(2):
        answer = await knowledge.http.get("/health")
        health = answer.json()
        assert (answer.status_code, health["status"]) == (200, "unhealthy")
        assert health["components"]["queue"]["ok"] is True
        store = health["components"]["knowledge_base"]
        assert store["ok"] is False
        assert "ove" in store["reason"]  # Move it away; stop cragside, move ... away
        assert str(place) not in answer.text
    other = (await knowledge.http.get("/health", headers={"X-RAG-Workspace": "other"})).json()
    assert other["status"] == "healthy"
    listing = await knowledge.http.get("/v1/documents", headers={"X-RAG-Workspace": "other"})
    assert listing.json()["total"] == 1
    assert (await knowledge.http.get("/healthz")).json() == {"ok": True}


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("kind", DAMAGES)
async def test_a_damaged_store_is_not_healthy(kind: str, home: Path) -> None:
    DAMAGES[kind](home / "default" / "store.sqlite3")
    knowledge = Knowledge(home)
    await is_told(knowledge, home)
    await knowledge.close()


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("kind", WHILE_OPEN)
async def test_a_store_that_is_damaged_while_it_is_open_is_not_healthy(kind: str, home: Path) -> None:
    knowledge = Knowledge(home)
    await knowledge.http.get("/v1/documents")
    DAMAGES[kind](home / "default" / "store.sqlite3")
    await is_told(knowledge, home)
    await knowledge.close()


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("command", ["status", "doctor"])
@pytest.mark.parametrize("kind", DAMAGES)
async def test_the_command_line_names_a_damaged_store(kind: str, command: str, home: Path) -> None:
    DAMAGES[kind](home / "default" / "store.sqlite3")
    session = Session(environment={"RAG_HOME": str(home)})
    result = await asyncio.to_thread(CliRunner().invoke, app, [command], obj=session)
    assert result.exit_code == 3, result.output
    assert "workspace default" in result.output or "default/store.sqlite3" in result.output
    assert "ove" in result.output  # Move it away, move its folder away


async def test_all_pages_are_read_once_in_ten_minutes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cragside.store.sqlite import upkeep

    read: list[Path] = []
    pages = upkeep._pages
    monkeypatch.setattr(upkeep, "_pages", lambda path, read_only: read.append(path) or pages(path, read_only))
    knowledge = Knowledge(home)
    for _ in range(5):
        assert json.loads((await knowledge.http.get("/health")).text)["status"] == "healthy"
    assert len(read) == 1
    await knowledge.close()
