"""SQLite's files are removed, cut or overwritten while they are open: nothing is accepted that would be lost."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters import sqlite_files
from tests.knowledge import Knowledge

NOTE = {"text": "Sea otters eat urchins in the kelp forest.", "name": "otters.md"}
LATER = {"text": "The tide turns at noon.", "name": "tide.md"}


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    made = Knowledge(tmp_path / "home")
    assert (await made.http.post("/v1/documents", json=NOTE)).status_code == 202
    yield made
    await made.close()


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
async def test_a_store_without_its_log_takes_nothing_and_loses_nothing(
    knowledge: Knowledge, tmp_path: Path, ends: tuple[str, ...]
) -> None:
    store = tmp_path / "home" / "default" / "store.sqlite3"
    for end in ends:
        store.with_name(store.name + end).unlink()
    answer = await knowledge.http.post("/v1/documents", json=LATER)
    assert answer.status_code == 503
    for end in ends:
        assert f"store.sqlite3{end}" in answer.json()["error"]["message"]
    assert "Restart cragside" in answer.json()["error"]["message"]
    health = (await knowledge.http.get("/health")).json()
    assert health["status"] == "unhealthy"
    assert "Restart cragside" in health["components"]["knowledge_base"]["reason"]
    assert (await knowledge.http.get("/ready")).status_code == 503
    # As after a kill: what was accepted before is in the file itself, unless the log is still there to be read.
    if "-wal" in ends:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            assert connection.execute("SELECT name FROM document").fetchall() == [("otters.md",)]
    await knowledge.close()
    again = Knowledge(tmp_path / "home")
    assert [each["name"] for each in (await again.http.get("/v1/documents")).json()["documents"]] == ["otters.md"]
    assert (await again.http.post("/v1/documents", json=LATER)).status_code == 202
    await again.close()


def overwritten(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)


def cut(path: Path, length: int) -> None:
    with path.open("r+b") as file:
        file.truncate(length)


# What happens to a log, in its place.
CHANGES: dict[str, Callable[[Path], Any]] = {
    "cut to nothing": lambda log: cut(log, 0),
    "cut within its head": lambda log: cut(log, 20),
    "cut to half": lambda log: cut(log, log.stat().st_size // 2),
    "its head is zeros": lambda log: overwritten(log, bytes(32)),
    "its head is garbage": lambda log: overwritten(log, b"\xa5" * 32),
    "another salt": lambda log: overwritten(log, log.read_bytes()[:16] + b"\x55" * 8),
    "all zeros": lambda log: overwritten(log, bytes(log.stat().st_size)),
}


async def names_after_a_kill(home: Path, scratch: Path) -> set[str]:
    """The documents that a start finds in what a killed server leaves."""
    left = shutil.copytree(home, scratch)
    for shared in left.rglob("*-shm"):
        shared.unlink()
    again = Knowledge(left)
    listed = (await again.http.get("/v1/documents")).json()["documents"]
    assert (await again.http.get("/health")).json()["status"] == "healthy"
    await again.close()
    return {each["name"] for each in listed}


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_log_loses_nothing_and_is_begun_anew(knowledge: Knowledge, tmp_path: Path, change: str) -> None:
    CHANGES[change](tmp_path / "home" / "default" / "store.sqlite3-wal")
    assert await names_after_a_kill(tmp_path / "home", tmp_path / "before") == {"otters.md"}
    assert (await knowledge.http.post("/v1/documents", json=LATER)).status_code == 202
    assert await names_after_a_kill(tmp_path / "home", tmp_path / "after") == {"otters.md", "tide.md"}
    assert (await knowledge.http.get("/ready")).status_code == 200


@pytest.mark.attack("damaged stores")
async def test_a_zeroed_index_of_the_log_loses_nothing(knowledge: Knowledge, tmp_path: Path) -> None:
    index = tmp_path / "home" / "default" / "store.sqlite3-shm"
    overwritten(index, bytes(index.stat().st_size))
    assert (await knowledge.http.post("/v1/documents", json=LATER)).status_code == 202
    assert await names_after_a_kill(tmp_path / "home", tmp_path / "after") == {"otters.md", "tide.md"}


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_log_that_holds_more_than_the_file_is_not_written_on_when_it_was_changed(
    knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(sqlite_files, "_PATIENCE_SECONDS", 0.05)
    store = tmp_path / "home" / "default" / "store.sqlite3"
    with closing(sqlite3.connect(store, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM document").fetchone()
        assert (await knowledge.http.post("/v1/documents", json=LATER)).status_code == 202
        CHANGES[change](store.with_name("store.sqlite3-wal"))
        answer = await knowledge.http.post("/v1/documents", json={"text": "The owl hoots.", "name": "owl.md"})
        assert answer.status_code == 503
        assert "store.sqlite3-wal" in answer.json()["error"]["message"]
        assert "Restart cragside" in answer.json()["error"]["message"]
        assert (await knowledge.http.get("/health")).json()["status"] == "unhealthy"
        assert (await knowledge.http.get("/ready")).status_code == 503
        assert "otters.md" in await names_after_a_kill(tmp_path / "home", tmp_path / "after")


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("share", [0, 2, 3])
async def test_a_store_whose_file_was_cut_takes_nothing(knowledge: Knowledge, tmp_path: Path, share: int) -> None:
    store = tmp_path / "home" / "default" / "store.sqlite3"
    cut(store, store.stat().st_size // share // 4096 * 4096 if share else 0)
    answer = await knowledge.http.post("/v1/documents", json=LATER)
    assert answer.status_code == 503
    assert "damaged" in answer.json()["error"]["message"]
    assert (await knowledge.http.get("/health")).json()["status"] == "unhealthy"


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_log_of_the_queue_loses_no_task(knowledge: Knowledge, tmp_path: Path, change: str) -> None:
    files = knowledge.queue._file._files  # type: ignore[attr-defined]
    await asyncio.to_thread(files.wait)
    CHANGES[change](tmp_path / "home" / ".queue.sqlite3-wal")
    assert (await knowledge.http.post("/v1/documents", json=LATER)).status_code == 202
    await knowledge.worker().run(until_idle=True)
    listed = (await knowledge.http.get("/v1/documents")).json()["documents"]
    assert {each["status"] for each in listed} == {"enriched"}


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("ends", [("",), ("-wal",), ("-shm",), ("", "-wal", "-shm")])
async def test_a_removed_queue_is_told_and_the_next_worker_finds_its_tasks(
    knowledge: Knowledge, tmp_path: Path, ends: tuple[str, ...]
) -> None:
    queue = tmp_path / "home" / ".queue.sqlite3"
    for end in ends:
        queue.with_name(queue.name + end).unlink()
    answer = await knowledge.http.post("/v1/documents", json=LATER)
    assert answer.status_code == 503
    assert f".queue.sqlite3{ends[0]}" in answer.json()["error"]["message"]
    assert "Restart cragside" in answer.json()["error"]["message"]
    assert "queue" in (await knowledge.http.get("/ready")).json()["not_ready"]
    await knowledge.close()
    again = Knowledge(tmp_path / "home")
    await again.worker().run(until_idle=True)
    listed = (await again.http.get("/v1/documents")).json()["documents"]
    assert {each["status"] for each in listed} == {"enriched"}
    await again.close()


@pytest.mark.attack("damaged stores")
async def test_a_workspace_whose_folder_was_removed_begins_anew(knowledge: Knowledge, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "default"
    folder.rename(tmp_path / "away")
    assert (await knowledge.http.post("/v1/documents", json=LATER)).status_code == 202
    await knowledge.close()
    again = Knowledge(tmp_path / "home")
    assert [each["name"] for each in (await again.http.get("/v1/documents")).json()["documents"]] == ["tide.md"]
    await again.close()


@pytest.mark.attack("damaged stores")
async def test_nothing_is_accepted_into_a_store_that_was_found_damaged(knowledge: Knowledge, tmp_path: Path) -> None:
    for number in range(30):
        text = " ".join(f"otter{number}x{word}" for word in range(400))
        await knowledge.http.post("/v1/documents", json={"text": text, "name": f"{number}.md", "enrich": False})
    await knowledge.close()
    path = tmp_path / "home" / "default" / "store.sqlite3"
    content = bytearray(path.read_bytes())
    for page in range(len(content) // 4096 // 2, len(content) // 4096 - 1):
        content[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    damaged = Knowledge(tmp_path / "home")
    assert (await damaged.http.get("/health")).json()["status"] == "unhealthy"
    answer = await damaged.http.post("/v1/documents", json=LATER)
    assert answer.status_code == 503
    assert "damaged" in answer.json()["error"]["message"]
    await damaged.close()
