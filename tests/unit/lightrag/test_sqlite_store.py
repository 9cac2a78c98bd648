"""Rows, transactions and other processes of the SQLite store."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cragside.bootstrap import Container
from cragside.domain.document import Mark
from cragside.domain.errors import ProcessingError, ServiceUnavailable
from cragside.ports.embedder import Vectors
from cragside.settings import load_settings
from cragside.store.drafts import Draft
from cragside.store.errors import LedgerError
from cragside.store.ledger import Ledger
from cragside.store.library import Library
from cragside.store.part_indexer import PartIndexer
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import ANSWERS, SqliteDriver
from cragside.store.workspaces import Workspaces
from tests.embedded_workspaces import embedded_workspaces, store_of
from tests.fakes import WordGrader
from tests.indexing import ARMSTRONG, LONG, SMALL_PARTS, SWAN, found, take, text, work
from tests.places import forked


def opened(home: Path) -> Container:
    return Container(load_settings({"RAG_HOME": str(home), **SMALL_PARTS}))


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[Container]:
    container = opened(tmp_path)
    yield container
    await container.close()


@pytest.fixture
async def library(container: Container) -> Library:
    return (await container.workspaces.open("w")).documents


@pytest.fixture
async def indexer(container: Container) -> PartIndexer:
    return (await container.workspaces.open("w")).work


@pytest.mark.parametrize(
    ("wrapped", "expected"),
    [
        (KeyError("a defect"), ProcessingError),
        (LedgerError("database is locked", "cannot be used now"), ServiceUnavailable),
        (ConnectionResetError("reset"), ServiceUnavailable),
        (ServiceUnavailable("model", "The model is silent."), ServiceUnavailable),
    ],
)
async def test_a_defect_is_not_reported_as_an_outage(
    library: Library,
    indexer: PartIndexer,
    monkeypatch: pytest.MonkeyPatch,
    wrapped: Exception,
    expected: type[Exception],
) -> None:
    async def fails(*_: Any) -> None:
        raise RuntimeError("as LightRAG wraps it") from wrapped

    acceptance = await library.accept(text("a.md", ARMSTRONG))
    monkeypatch.setattr(Draft, "extract", fails)
    with pytest.raises(expected):
        await work(indexer, acceptance.tasks)


async def test_extending_the_graph_again_changes_nothing(
    library: Library, indexer: PartIndexer, tmp_path: Path
) -> None:
    for source in (text("a.md", ARMSTRONG), text("b.md", SWAN)):
        await work(indexer, (await library.accept(source)).tasks)
    before = dump(tmp_path)
    await work(indexer, await library.restart(force=True))
    assert dump(tmp_path) == before


async def test_a_restored_text_has_its_sections_and_no_earlier_failure(
    library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = text("a.md", ARMSTRONG, marks=(Mark(0, 3, "Lamps"),), metadata={"team": "x"})
    first = await library.accept(source)
    await indexer.failed(first.tasks[0], "no embedder")
    await interrupted(monkeypatch, library.delete(first.record.id))
    assert await library.document(first.record.id) is None
    back = await library.accept(source)
    assert (back.record.status, back.record.error, back.record.metadata) == ("pending", "", {"team": "x"})
    assert await library.source(back.record.id) == replace(source, title="a.md", size=len(ARMSTRONG))
    await work(indexer, back.tasks)
    assert [(passage.page, passage.section) for passage in await library.passages(back.record.id)] == [(3, "Lamps")]


async def test_a_deleted_text_is_nowhere_in_the_store_before_the_graph_is_swept(
    library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "Zanzibar keeps Quagmire. " * 3
    source = text("a.md", secret, title="Zanzibar", marks=(Mark(0, 1, "Quagmire"),), metadata={"where": "Zanzibar"})
    acceptance = await library.accept(replace(source, tier1={"about": "Quagmire"}))
    for task in acceptance.tasks:
        if task.stage == "embed":
            await indexer.embed(task)
        await indexer.annotate(task, [{"keywords": ["Quagmire"]}], {"summary": "Zanzibar"})
    await interrupted(monkeypatch, library.delete(acceptance.record.id))
    with closing(sqlite3.connect(tmp_path / "w" / "store.sqlite3")) as store:
        left = [line for line in store.iterdump() if "Quagmire" in line or "Zanzibar" in line]
    assert left == []


async def test_a_deletion_does_not_wait_for_the_writer_of_the_graph_and_the_worker_does_the_rest(
    container: Container, library: Library, indexer: PartIndexer, tmp_path: Path
) -> None:
    acceptance = await library.accept(text("a.md", ARMSTRONG))
    await work(indexer, acceptance.tasks)
    entities = (await (await container.workspaces.open("w")).passages.status()).entities
    other = opened(tmp_path)
    writer = (await other.workspaces.open("w")).passages
    async with (await store_of(other.workspaces, "w")).writing(), asyncio.timeout(10):
        assert await container.intake.delete(acceptance.record.id, workspace="w")
        assert not await container.intake.delete(acceptance.record.id, workspace="w")
    status = await writer.status()
    assert (status.documents, status.passages, status.entities) == (0, 0, entities)
    assert await found(container, "Who built Cragside?") == []
    await container.worker().run(until_idle=True, sweep=False)
    status = await writer.status()
    assert (status.entities, status.relations) == (0, 0)
    assert await library.restart(failures=False) == []
    await other.close()


async def test_the_worker_first_finishes_a_killed_deletion(
    container: Container, library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acceptance = await library.accept(text("a.md", LONG))
    await work(indexer, acceptance.tasks)
    await interrupted(monkeypatch, library.delete(acceptance.record.id))
    await container.worker().run(until_idle=True)
    left = dump(tmp_path)
    for kind in ("nodes", "edges", "vectors", "words", "documents", "parts", "chunks", "mentions"):
        assert left[kind] == [], kind


async def test_a_sweep_that_fails_does_not_make_a_deletion_fail(
    library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acceptance = await library.accept(text("a.md", ARMSTRONG))
    await work(indexer, acceptance.tasks)

    async def fails(*_: Any) -> None:
        raise RuntimeError("the model is silent")

    with monkeypatch.context() as patched:
        patched.setattr(Draft, "forget", fails)
        assert await library.delete(acceptance.record.id)
    assert dump(tmp_path)["nodes"] != []
    await work(indexer, await library.restart(failures=False))
    assert dump(tmp_path)["nodes"] == []


async def test_accepting_leaves_the_event_loop_free_while_another_process_commits(
    library: Library, tmp_path: Path
) -> None:
    await library.accept(text("a.md", ARMSTRONG))
    with closing(sqlite3.connect(tmp_path / "w" / "store.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        accepting = asyncio.create_task(library.accept(text("b.md", SWAN)))
        # Were the loop held, nobody could end the other one's transaction, and the text would be refused.
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not accepting.done()
        other.execute("COMMIT")
    assert (await accepting).outcome == "new"


async def test_texts_that_come_together_are_copied_into_the_file_together(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, keep = asyncio.Barrier(3), SqliteDriver.keep

    async def together(self: SqliteDriver) -> None:
        await entered.wait()  # for all of them to be entered, which takes a lease
        await keep(self)

    await library.accept(text("first.md", SWAN))
    monkeypatch.setattr(SqliteDriver, "keep", together)
    async with asyncio.timeout(60):
        await asyncio.gather(*(library.accept(text(f"{number}.md", ARMSTRONG)) for number in range(3)))
    assert (await library.documents())[1] == 4


async def test_a_text_whose_workspace_is_removed_before_it_is_copied_is_in_the_workspace_of_that_name(
    container: Container, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = SqliteDriver.keep

    async def removed_first(self: SqliteDriver) -> None:
        monkeypatch.setattr(SqliteDriver, "keep", keep)
        shutil.rmtree(self.database.path.parent)
        await keep(self)

    await library.accept(text("first.md", SWAN))
    monkeypatch.setattr(SqliteDriver, "keep", removed_first)
    accepted = await library.accept(text("a.md", ARMSTRONG))
    assert await library.documents() == ([accepted.record], 1)


async def test_languages_are_counted_beside_the_connection_of_the_event_loop(
    container: Container, library: Library
) -> None:
    await library.accept(text("a.md", ARMSTRONG))
    driver = (await store_of(container.workspaces, "w")).ledger.driver
    assert isinstance(driver, SqliteDriver)
    statements: list[str] = []
    driver.database._connection.set_trace_callback(statements.append)
    assert await library.languages() == {None: 1}
    assert [statement for statement in statements if "tier2" in statement] == []


async def interrupted(monkeypatch: pytest.MonkeyPatch, deleting: Awaitable[object]) -> None:
    """A deletion whose process dies behind its first commit."""

    async def dies(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("cragside.store.library.sweep_if_free", dies)
        with pytest.raises(Killed):
            await deleting


class Killed(BaseException):
    """As if the process were gone."""


async def test_a_name_that_many_have_gets_its_number_in_a_few_steps(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        record = (await library.accept(text("memory.txt", f"Note {number}."), rename=True)).record
    assert record.name == "memory (20).txt"
    asked, has_source = [], Ledger.has_source

    def counted(self: Ledger, source: str) -> bool:
        asked.append(source)
        return has_source(self, source)

    monkeypatch.setattr(Ledger, "has_source", counted)
    assert (await library.accept(text("memory.txt", "Another."), rename=True)).record.name == "memory (21).txt"
    assert 0 < len(asked) < 12


Step = Callable[[Library, PartIndexer], Awaitable[object]]


async def drop(library: Library, indexer: PartIndexer, name: str) -> None:
    if record := await library.sourced(name):
        await library.delete(record.id)
    # What could not be swept at once, or was left by whoever was interrupted, is the worker's.
    await work(indexer, await library.restart(failures=False))


STEPS: list[Step] = [
    lambda library, indexer: take(library, indexer, text("a.md", ARMSTRONG)),
    lambda library, indexer: take(library, indexer, text("b.md", SWAN)),
    lambda library, indexer: take(library, indexer, text("a.md", LONG[:400])),
    lambda library, indexer: drop(library, indexer, "b.md"),
    lambda library, indexer: take(library, indexer, text("c.md", SWAN + " Lord Kelvin wrote to Joseph Swan.")),
]


def cheap(home: Path) -> Workspaces:
    async def open_embedder(name: str | None) -> LetterEmbedder:
        return LetterEmbedder()

    return embedded_workspaces(
        home, open_embedder=open_embedder, ranker=WordGrader(), chunk_words=(40, 5), part_passages=2, saved_queries=0
    )


class LetterEmbedder:
    name = "letters"
    dimensions = 8
    in_process = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.full((len(texts), self.dimensions), 0.01, np.float32)
        for row, content in zip(rows, texts, strict=True):
            for letter in content:
                row[ord(letter) % self.dimensions] += 1
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


async def perform(home: Path, step: Step) -> bool:
    """Return True if the step was done, False if a failure of the store ended it."""
    workspaces = cheap(home)
    try:
        await step((await workspaces.open("w")).documents, (await workspaces.open("w")).work)
    except ServiceUnavailable:
        return False
    else:
        return True
    finally:
        await workspaces.close()


# The first text and a deletion; the others take seconds.
@pytest.mark.parametrize("number", [0, 3, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 4))])
async def test_a_retry_after_any_failed_write_reaches_the_same_state(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, undisturbed = tmp_path / "before", tmp_path / "undisturbed"
    before.mkdir()
    for step in STEPS[:number]:
        assert await perform(before, step)
    shutil.copytree(before, undisturbed)
    assert await perform(undisturbed, STEPS[number])
    expected = dump(undisturbed)
    transaction, failing, count = Database.transaction, 0, 0

    def failing_once(self: Database) -> Any:
        nonlocal count
        count += 1
        if count == failing:
            raise LedgerError("disk I/O error", "cannot be used now")
        return transaction(self)

    monkeypatch.setattr(Database, "transaction", failing_once)
    while True:
        failing, count = failing + 1, 0
        home = tmp_path / str(failing)
        shutil.copytree(before, home)
        done = await perform(home, STEPS[number])
        if count < failing:
            break
        if not done:
            assert await perform(home, STEPS[number])
        assert dump(home) == expected, f"write {failing}"
    assert failing > 2


def dump(home: Path) -> dict[str, Any]:
    """All that a store knows, without times and row numbers."""
    with closing(sqlite3.connect(home / "w" / "store.sqlite3")) as connection:

        def rows(sql: str) -> list[Any]:
            return sorted((tuple(map(_timeless, row)) for row in connection.execute(sql)), key=repr)

        return {
            "nodes": rows("SELECT id, value, degree FROM node"),
            "edges": rows("SELECT source, target, value FROM edge"),
            "vectors": rows("SELECT namespace, id, source, target, hex(vector), value FROM vector"),
            "words": rows("SELECT vector.id, terms FROM passage JOIN vector ON vector.seq = passage.rowid"),
            "strays": rows("SELECT rowid FROM passage WHERE rowid NOT IN (SELECT seq FROM vector)"),
            "kv": rows("SELECT namespace, id, value FROM kv"),
            "documents": rows("SELECT id, content_hash, state, name, title, text FROM document"),
            "origins": rows("SELECT document_id, source FROM origin"),
            "parts": rows(
                "SELECT id, number, key, first, last, embedded, enrichment, error, tier3 FROM part JOIN document"
                " USING (version)"
            ),
            "chunks": rows("SELECT id, part, number, page, section, tier2 FROM chunk"),
            "mentions": rows("SELECT kind, name, passage FROM mention"),
        }


def _timeless(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    fields = json.loads(value)
    return {key: fields[key] for key in sorted(fields) if not key.endswith(("_at", "_time"))}


async def test_very_many_namesakes_are_labelled_with_their_full_sources(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cragside.store.documents.MOST_NAMESAKES", 2)
    sources = [f"/home/ann/w{number}/todo.md" for number in range(3)]
    for source in sources[:2]:
        await library.accept(text("todo.md", source, source=source))
    assert [record.label for record in await library.named("todo.md")] == ["w1/todo.md", "w0/todo.md"]
    await library.accept(text("todo.md", ARMSTRONG, source=sources[2]))
    assert [record.label for record in await library.named("todo.md")] == sources[::-1]


def brought(home: Path, name: str, content: str) -> None:
    async def bring() -> None:
        container = Container(load_settings({"RAG_HOME": str(home)}))
        await (await container.workspaces.open("default")).passages.save_documents([text(name, content)])
        await container.close()

    asyncio.run(bring())


async def test_the_version_changes_with_what_another_process_writes(tmp_path: Path) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([text("otter.md", ARMSTRONG)])
    before = await repository.version()
    process = forked(brought, tmp_path, "pump.md", SWAN)
    await asyncio.to_thread(process.join)
    assert process.exitcode == 0
    assert await repository.version() != before
    await container.close()


async def test_the_version_is_at_hand_once_the_store_is_open(tmp_path: Path) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    assert container.workspaces.version_at_hand("default") is None
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([text("otter.md", ARMSTRONG)])
    first = container.workspaces.version_at_hand("default")
    assert first == await repository.version()
    await repository.save_documents([text("pump.md", SWAN)])
    second = container.workspaces.version_at_hand("default")
    assert second == await repository.version() != first
    await container.close()


async def test_a_copied_document_costs_the_time_of_its_own_passages(container: Container) -> None:
    await container.intake.text(text("swan.md", SWAN), workspace="w")
    await container.worker().run(until_idle=True, sweep=False)
    [file] = container.settings.home.rglob("store.sqlite3")
    with closing(sqlite3.connect(file)) as database:
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {ANSWERS}", (1,))]
    assert plan[0].startswith("SEARCH chunk")
    assert not [step for step in plan if step.startswith("SCAN") and "named" not in step]
