"""The disk that documents took comes back when they are forgotten, replaced or pruned."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from cragside.domain.indexing import Task
from cragside.store.sqlite import upkeep
from tests.knowledge import Knowledge

pytestmark = pytest.mark.slow

LARGE = "\n\n".join(" ".join(f"w{row * word % 9973} Otter{row % 20}" for word in range(100)) for row in range(60))
SMALL = "Sea otters eat urchins in the kelp forest."
# A store without documents takes 0.2 MB, the large document 3 MB.
EMPTY = 600_000


@pytest.fixture
async def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Knowledge]:
    monkeypatch.setattr(upkeep, "PAUSE_SECONDS", 0)
    async with Knowledge(tmp_path / "home") as made:
        yield made


def size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())


async def bring(knowledge: Knowledge, text: str, name: str = "notes.md") -> str:
    document = await knowledge.add(name, text)
    await knowledge.index()
    return str(document["id"])


async def shrunk(home: Path) -> int:
    """The size of the store once it has been tidied up, while it stays open."""
    store = home / "default"
    for _ in range(3000):
        if size(store) < EMPTY:
            break
        await asyncio.sleep(0.02)
    return size(store)


async def delete(knowledge: Knowledge, document: str) -> None:
    """Delete a document, and its part of the graph too, which a busy machine leaves to a worker."""
    assert (await knowledge.http.delete(f"/v1/documents/{document}")).status_code == 204
    await knowledge.worker().run(until_idle=True)


async def test_deleting_a_document_frees_disk_space_while_the_server_runs(knowledge: Knowledge, tmp_path: Path) -> None:
    kept = await bring(knowledge, SMALL, "small.md")
    document = await bring(knowledge, LARGE)
    assert size(tmp_path / "home" / "default") > 3 * EMPTY
    await delete(knowledge, document)
    assert await shrunk(tmp_path / "home") < EMPTY
    found = await knowledge.http.post("/query", json={"query": "What do sea otters eat?", "mode": "naive"})
    assert "urchins" in found.text
    assert (await knowledge.http.get(f"/v1/documents/{kept}")).json()["status"] == "enriched"
    # Nothing of the text is left anywhere, what a model was asked included.
    content = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"w9972" not in content


async def test_a_kill_before_the_disk_is_given_back_leaves_it_to_the_next_worker(
    knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await bring(knowledge, LARGE)
    with monkeypatch.context() as killed:
        killed.setattr(upkeep.Tidying, "ask", lambda *_: None)
        assert (await knowledge.http.delete(f"/v1/documents/{document}")).status_code == 204
        await knowledge.close()
    assert size(tmp_path / "home" / "default") > EMPTY
    later = Knowledge(tmp_path / "home")
    await later.worker().run(until_idle=True)
    await later.close()
    assert size(tmp_path / "home" / "default") < EMPTY
    content = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"w9972" not in content
    with closing(sqlite3.connect(tmp_path / "home" / "default" / "store.sqlite3")) as connection:
        assert connection.execute("SELECT 1 FROM meta WHERE key = 'untidy'").fetchone() is None


async def test_replacing_a_large_document_frees_disk_space(knowledge: Knowledge, tmp_path: Path) -> None:
    await bring(knowledge, LARGE)
    await bring(knowledge, SMALL)
    assert await shrunk(tmp_path / "home") < EMPTY


async def test_a_short_reader_does_not_keep_the_disk_space(
    knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await bring(knowledge, LARGE)
    refused = threading.Event()
    monkeypatch.setattr(time, "sleep", lambda seconds: refused.set() if seconds > 0.01 else None)
    with closing(sqlite3.connect(tmp_path / "home" / "default" / "store.sqlite3", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM chunk").fetchone()
        monkeypatch.setattr(upkeep, "_CUTS", 100_000)
        await delete(knowledge, document)
        assert await asyncio.to_thread(refused.wait, 60)
    assert await shrunk(tmp_path / "home") < EMPTY


async def test_a_writer_after_the_cut_does_not_leave_the_store_untidy(
    knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await bring(knowledge, LARGE)
    store = tmp_path / "home" / "default" / "store.sqlite3"
    cut = upkeep._cut_log

    def cut_and_write(connection: sqlite3.Connection) -> bool:
        done = cut(connection)
        writer = sqlite3.connect(store, isolation_level=None, check_same_thread=False)
        writer.execute("BEGIN IMMEDIATE")
        threading.Timer(0.3, writer.close).start()
        return done

    monkeypatch.setattr(upkeep, "_cut_log", cut_and_write)
    await delete(knowledge, document)
    await knowledge.container.close()
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT 1 FROM meta WHERE key = 'untidy'").fetchone() is None


async def test_the_answers_about_other_documents_are_kept(knowledge: Knowledge, tmp_path: Path) -> None:
    await bring(knowledge, SMALL, "small.md")
    store = tmp_path / "home" / "default" / "store.sqlite3"
    answers = (
        "SELECT id FROM kv WHERE namespace = 'llm_response_cache' AND json_extract(value, '$.chunk_id') IS NOT NULL"
    )
    with closing(sqlite3.connect(store)) as connection:
        before = connection.execute(answers).fetchall()
    document = await bring(knowledge, LARGE)
    await delete(knowledge, document)
    await shrunk(tmp_path / "home")
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(answers).fetchall() == before != []


async def test_readers_continue_during_the_rewrite(knowledge: Knowledge, tmp_path: Path) -> None:
    document = await bring(knowledge, LARGE)
    store = tmp_path / "home" / "default" / "store.sqlite3"
    with closing(sqlite3.connect(store, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM chunk").fetchone()
        await knowledge.http.delete(f"/v1/documents/{document}")
        await knowledge.container.close()
        assert reader.execute("SELECT count(*) FROM chunk").fetchone() == before
        assert reader.execute("PRAGMA quick_check").fetchone()[0] == "ok"


async def test_the_queue_gives_its_disk_back(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path / "home")
    tasks = [Task("w", f"doc-{number}", "hash" * 16, 0, "embed") for number in range(3000)]
    await knowledge.queue.send(tasks)
    await knowledge.queue.close()
    queue = tmp_path / "home" / ".queue.sqlite3"
    full = queue.stat().st_size
    # As ended tasks do.
    with closing(sqlite3.connect(queue)) as connection, connection:
        connection.execute("DELETE FROM task")
    await knowledge.close()
    assert queue.stat().st_size < full / 10
