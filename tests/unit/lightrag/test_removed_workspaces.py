"""Removing a workspace, on each backend, while others have it open."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.names import memory_of
from cragside.store.backends.interface import Backend
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.sqlite.database import Database
from cragside.store.workspaces import Workspaces
from tests.embedded_workspaces import embedded_workspaces, store_of
from tests.fakes import WordGrader
from tests.services.backends import made
from tests.unit.lightrag.test_workspaces import LetterEmbedder

OTTER = SourceText("otter.md", "Sea otters eat urchins in the kelp forest.", "Sea otter")
PUMP = SourceText("pump.md", "A heat pump moves heat from a cold place to a warm one.", "Heat pump")


async def letters(_: str | None) -> LetterEmbedder:
    return LetterEmbedder("small", 16)


def workspaces(home: Path, backend: Backend) -> Workspaces:
    return embedded_workspaces(home, backend=backend, open_embedder=letters, ranker=WordGrader())


Build = Callable[[], Workspaces]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services("postgres"))])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with made(request) as backend:
        yield backend


@pytest.fixture
def build(backend: Backend, tmp_path: Path) -> Build:
    return lambda: workspaces(tmp_path, backend)


async def test_documents_and_memory_go_and_the_name_can_be_used_again(build: Build) -> None:
    store = build()
    for name in ("w", memory_of("w"), "other"):
        await (await store.open(name)).documents.accept(OTTER)
    assert await store.remove("w")
    assert await store.names() == ["other"]
    assert not await store.remove("w")
    library = (await store.open("w")).documents
    assert await library.documents() == ([], 0)
    await library.accept(PUMP)
    assert [record.name for record in (await library.documents())[0]] == ["pump.md"]
    await store.close()


async def test_another_that_has_it_open_serves_nothing_of_it_and_keeps_what_it_is_given(build: Build) -> None:
    server, command = build(), build()
    library = (await server.open("w")).documents
    await library.accept(OTTER)
    assert await command.remove("w")
    assert await library.documents() == ([], 0)
    assert await server.names() == []
    await command.close()
    await library.accept(PUMP)
    await server.close()
    later = build()
    assert [record.name for record in (await (await later.open("w")).documents.documents())[0]] == ["pump.md"]
    await later.close()


async def test_a_document_that_waits_for_the_lease_comes_into_the_new_store(
    build: Build, backend: Backend, tmp_path: Path
) -> None:
    server = build()
    library = (await server.open("w")).documents
    await library.accept(OTTER)
    store = await store_of(server, "w")
    async with store.alone():
        waiting = asyncio.create_task(library.accept(PUMP))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await backend.take_away(tmp_path / "w")
    await waiting
    assert [record.name for record in (await library.documents())[0]] == ["pump.md"]
    await server.close()


async def test_a_worker_in_the_middle_does_not_bring_it_back(build: Build) -> None:
    server, command = build(), build()
    library, work = (await server.open("w")).documents, (await server.open("w")).work
    tasks = (await library.accept(OTTER)).tasks
    assert await command.remove("w")
    for task in tasks:
        await (work.embed if task.stage == "embed" else work.extend_graph)(task)
    assert await server.names() == []
    await asyncio.gather(server.close(), command.close())


async def test_closing_the_removed_file_leaves_the_log_of_the_new_one(tmp_path: Path) -> None:
    backend, folder = SqliteBackend(), tmp_path / "w"
    old = Database.acquire(folder)
    await backend.take_away(folder)
    new = Database.acquire(folder)
    assert (old.is_removed(), new.is_removed(), old.generation()) == (True, False, "removed")
    with new.transaction() as connection:
        connection.execute("INSERT INTO meta VALUES ('key', 'kept')")
    old.release()
    reader = Database(new.path)
    assert reader.meta("key") == "kept"
    assert Database.acquire(folder) is new
    for _ in range(2):
        new.release()


async def test_an_interrupted_removal_is_gone_and_its_rest_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = workspaces(tmp_path, SqliteBackend())
    await (await store.open("w")).documents.accept(OTTER)
    monkeypatch.setattr("cragside.store.backends.sqlite.shutil.rmtree", lambda *_, **__: None)
    assert await store.remove("w")
    assert (await store.names(), len(list(tmp_path.iterdir()))) == ([], 1)
    monkeypatch.undo()
    assert not await store.remove("w")
    assert list(tmp_path.iterdir()) == []
    await store.close()


async def test_a_workspace_of_another_format_can_be_removed(tmp_path: Path) -> None:
    store = workspaces(tmp_path, SqliteBackend())
    await (await store.open("w")).passages.save_documents([SourceText("a.txt", "Sea otters eat sea urchins.")])
    await store.close()
    with closing(sqlite3.connect(tmp_path / "w" / "store.sqlite3")) as connection:
        connection.execute("PRAGMA user_version = 2")
    store = workspaces(tmp_path, SqliteBackend())
    with pytest.raises(ServiceUnavailable, match=r"format 2, .* Remove the workspace and ingest"):
        await (await store.open("w")).passages.status()
    assert await store.remove("w")
    assert not (tmp_path / "w").exists()
    await store.close()


async def test_a_damaged_workspace_can_be_removed(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "store.sqlite3").write_bytes(b"no store" * 1000)
    store = workspaces(tmp_path, SqliteBackend())
    assert await store.remove("w")
    assert list(tmp_path.iterdir()) == []
