"""SQLite's files beside a store are removed while it is open: nothing is accepted that would be lost."""

import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.knowledge import Knowledge, answer_of

NOTE = {"text": "Sea otters eat urchins in the kelp forest.", "name": "otters.md"}
LATER = {"text": "The tide turns at noon.", "name": "tide.md"}


@pytest.fixture
async def knowledge(tmp_path: Path) -> AsyncIterator[Knowledge]:
    async with Knowledge(tmp_path / "home") as made:
        await made.add(**NOTE)
        yield made


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("ends", [("-wal",), ("-shm",), ("-wal", "-shm")])
async def test_a_store_without_its_log_takes_nothing_and_loses_nothing(
    knowledge: Knowledge, tmp_path: Path, ends: tuple[str, ...]
) -> None:
    store = tmp_path / "home" / "default" / "store.sqlite3"
    for end in ends:
        store.with_name(store.name + end).unlink()
    found = answer_of(await knowledge.http.post("/v1/documents", json=LATER), 503)
    for end in ends:
        assert f"store.sqlite3{end}" in found["error"]["message"]
    assert "Restart cragside" in found["error"]["message"]
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
    await again.add(**LATER)
    await again.close()


@pytest.mark.attack("damaged stores")
@pytest.mark.parametrize("change", ["cut", "cut in the middle", "overwritten", "body overwritten", "shredded"])
@pytest.mark.parametrize("ends", ["told", "clean", "killed"])
async def test_a_store_whose_log_was_changed_loses_no_document_and_stays_whole(
    tmp_path: Path, change: str, ends: str
) -> None:
    knowledge = Knowledge(tmp_path / "home")
    names = [f"{number}.md" for number in range(5)]
    for name in names:
        await knowledge.add(**NOTE | {"name": name})
    # What indexing writes behind that is in the log alone.
    await knowledge.index()
    log = tmp_path / "home" / "default" / "store.sqlite3-wal"
    size = log.stat().st_size
    assert size
    if change in ("overwritten", "body overwritten", "shredded"):
        kept = 32 if change == "body overwritten" else 0
        with log.open("r+b") as file:
            file.seek(kept)
            file.write(b"\xa5" * (size - kept))
        if change == "shredded":
            log.unlink()
    else:
        os.truncate(log, size // 2 if change == "cut in the middle" else 0)
    if ends == "told":
        found = answer_of(await knowledge.http.post("/v1/documents", json=LATER), 503)
        did = "removed" if change == "shredded" else "changed"
        assert f"{did} store.sqlite3-wal" in found["error"]["message"]
        assert (await knowledge.http.get("/ready")).status_code == 503
    if ends == "killed":
        shutil.copytree(tmp_path / "home", tmp_path / "killed")
    await knowledge.close()
    home = tmp_path / ("killed" if ends == "killed" else "home")
    with closing(sqlite3.connect(home / "default" / "store.sqlite3", isolation_level=None)) as connection:
        # The process that held the leases would be gone. Here it is this one, which waits for them.
        connection.execute("DELETE FROM lease")
    again = Knowledge(home)
    assert sorted(each["name"] for each in (await again.http.get("/v1/documents")).json()["documents"]) == names
    await again.add(**LATER)
    assert (await again.http.get("/health")).json()["status"] == "healthy"
    await again.worker().run(until_idle=True)
    documents = (await again.http.get("/v1/documents")).json()["documents"]
    assert {each["status"] for each in documents} <= {"searchable", "enriched"}
    await again.close()


@pytest.mark.attack("damaged stores")
async def test_a_workspace_whose_folder_was_removed_begins_anew(knowledge: Knowledge, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "default"
    folder.rename(tmp_path / "away")
    await knowledge.add(**LATER)
    await knowledge.close()
    again = Knowledge(tmp_path / "home")
    assert [each["name"] for each in (await again.http.get("/v1/documents")).json()["documents"]] == ["tide.md"]
    await again.close()


@pytest.mark.attack("damaged stores")
async def test_nothing_is_accepted_into_a_store_that_was_found_damaged(knowledge: Knowledge, tmp_path: Path) -> None:
    for number in range(30):
        text = " ".join(f"otter{number}x{word}" for word in range(400))
        await knowledge.add(f"{number}.md", text, enrich=False)
    await knowledge.close()
    path = tmp_path / "home" / "default" / "store.sqlite3"
    content = bytearray(path.read_bytes())
    for page in range(len(content) // 4096 // 2, len(content) // 4096 - 1):
        content[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    damaged = Knowledge(tmp_path / "home")
    assert (await damaged.http.get("/health")).json()["status"] == "unhealthy"
    assert "damaged" in answer_of(await damaged.http.post("/v1/documents", json=LATER), 503)["error"]["message"]
    await damaged.close()
