"""The embedded store on disk: which model built it, how it is built anew, and who may use it at once."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.indexing import Stage
from cragside.domain.query import Query
from cragside.ports.embedder import Vectors
from cragside.ports.models import LanguageModel
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.drafts import Draft
from cragside.store.ledger import Ledger
from cragside.store.library import Library
from cragside.store.open_store import Store
from cragside.store.opening import StoreOpener
from cragside.store.sqlite import database
from cragside.store.workspaces import Workspaces
from tests.embedded_workspaces import embedded_workspaces, open_stores, store_of
from tests.fakes import WordGrader
from tests.places import forked

PUMP = SourceText("pump.md", "A heat pump moves heat from a cold place to a warm one.", "Heat pump")
OTTER = SourceText("otter.md", "Sea otters eat urchins in the kelp forest.", "Sea otter")


class LetterEmbedder:
    in_process = False

    def __init__(self, name: str, dimensions: int) -> None:
        self.name = name
        self.dimensions = dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.full((len(texts), self.dimensions), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text:
                row[ord(letter) % self.dimensions] += 1
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


class Silent:
    """A model that does not answer."""

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        raise ServiceUnavailable("extractor", "no answer")


class SilentEmbedder(LetterEmbedder):
    """A model that does not answer."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise ServiceUnavailable("embedder", "no answer")


class PumplessEmbedder(LetterEmbedder):
    """A model that does not answer about pumps."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if any("pump" in text for text in texts):
            raise ServiceUnavailable("embedder", "no answer")
        return await super().embed(texts)


Build = Callable[..., Workspaces]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    models = {"small": LetterEmbedder("small", 16), "large": LetterEmbedder("large", 48)}

    def built(
        embedding_model: str | None = None,
        default: str = "small",
        embedder: LetterEmbedder | None = None,
        model: LanguageModel | None = None,
        home: Path = tmp_path,
        **limits: Any,
    ) -> Workspaces:
        async def open_embedder(name: str | None) -> LetterEmbedder:
            return embedder or models[name or default]

        return embedded_workspaces(
            home,
            embedding_model=embedding_model,
            open_embedder=open_embedder,
            model=model,
            ranker=WordGrader(),
            **limits,
        )

    return built


async def test_a_store_keeps_the_model_that_built_it(build: Build) -> None:
    first = build()
    await (await first.open("w")).passages.save_documents([OTTER])
    await first.close()
    later = build(default="large")
    repository = (await later.open("w")).passages
    assert (await repository.status()).embedding_model == "small"
    assert (await repository.retrieve("what do otters eat?", limit=1))[0].title == "Sea otter"
    await later.close()


async def test_naming_another_model_is_an_error_that_names_both_and_the_way_out(build: Build) -> None:
    first = build()
    await (await first.open("w")).passages.save_documents([OTTER])
    await first.close()
    with pytest.raises(ConfigurationError, match=r"small.*large.*cragside reindex --workspace w"):
        await (await build(embedding_model="large").open("w")).passages.status()


async def test_reindexing_rebuilds_the_store_with_the_named_model(build: Build) -> None:
    first = build()
    await (await first.open("w")).passages.save_documents([OTTER, SourceText("kelp.md", "Kelp grows fast.", "Kelp")])
    await first.close()
    names: list[str] = []
    again = build(embedding_model="large")
    assert await again.reindex("w", names.append) == 2
    assert sorted(names) == ["kelp.md", "otter.md"]
    repository = (await again.open("w")).passages
    status = await repository.status()
    assert (status.embedding_model, status.documents) == ("large", 2)
    assert (await repository.retrieve("what do otters eat?", limit=1))[0].title == "Sea otter"
    await again.close()


async def test_a_store_can_be_rebuilt_while_its_model_is_unreachable(build: Build, tmp_path: Path) -> None:
    first = build()
    await (await first.open("w")).passages.save_documents([OTTER])
    await first.close()
    with sqlite3.connect(tmp_path / "w" / "store.sqlite3") as connection:
        connection.execute("UPDATE meta SET value = 'gone' WHERE key = 'embedding_model'")
    again = build(default="large")
    assert await again.reindex("w", lambda _: None) == 1
    assert (await (await again.open("w")).passages.status()).embedding_model == "large"
    await again.close()


async def test_an_empty_store_is_not_bound_to_a_model(build: Build) -> None:
    first = build()
    await (await first.open("w")).passages.status()
    await first.close()
    second = build(embedding_model="large")
    await (await second.open("w")).passages.save_documents([OTTER])
    assert (await (await second.open("w")).passages.status()).embedding_model == "large"
    await second.close()


async def test_workspaces_do_not_see_each_other(build: Build) -> None:
    store = build()
    await (await store.open("a")).passages.save_documents([OTTER])
    assert await (await store.open("b")).passages.retrieve("what do otters eat?", limit=5) == []
    await store.close()


async def test_a_request_that_gives_up_while_the_store_opens_does_not_stop_the_opening(build: Build) -> None:
    before = build()
    await (await before.open("w")).passages.save_documents([OTTER])
    await before.close()
    store = build()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await (await store.open("w")).passages.status()
    first, second = await asyncio.gather(store_of(store, "w"), store_of(store, "w"))
    assert first is second
    assert (await (await store.open("w")).passages.status()).documents == 1
    await store.close()


async def test_an_opening_that_fails_meanwhile_leaves_no_other_workspace_open(build: Build, tmp_path: Path) -> None:
    before = build()
    await (await before.open("w")).passages.save_documents([OTTER])
    await before.close()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "store.sqlite3").write_bytes(b"no store" * 1000)
    store = build()
    opened = (await store.open("w")).passages
    assert (await opened.status()).documents == 1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await (await store.open("damaged")).passages.status()
    await store.close()
    with pytest.raises(ServiceUnavailable, match="closed"):
        await opened.get_query("q")


async def test_a_store_that_could_not_be_opened_is_tried_again(build: Build, tmp_path: Path) -> None:
    store = build()
    repository = (await store.open("w")).passages
    (tmp_path / "w").write_text("a file")
    with pytest.raises(ServiceUnavailable):
        await repository.save_documents([OTTER])
    (tmp_path / "w").unlink()
    assert (await repository.save_documents([OTTER]))[0].status == "indexed"
    await store.close()


async def test_asking_an_unknown_workspace_leaves_no_trace(build: Build, tmp_path: Path) -> None:
    store = build()
    repository = (await store.open("nobody")).passages
    assert await repository.retrieve("what do otters eat?", limit=3) == []
    assert (await repository.status()).documents == 0
    assert not await (await store.open("nobody")).documents.delete("doc-otter")
    await repository.save_query(Query("q", "what?"))
    assert await repository.get_query("q") is None
    assert list(tmp_path.iterdir()) == []
    await store.close()


async def test_a_failed_rebuild_keeps_the_old_store(build: Build) -> None:
    store = build()
    await (await store.open("w")).passages.save_documents([OTTER, PUMP])
    await store.close()
    again = build(embedding_model="large", embedder=PumplessEmbedder("large", 48))
    with pytest.raises(ServiceUnavailable, match="as it was"):
        await again.reindex("w", lambda _: None)
    await again.close()
    after = build()
    status = await (await after.open("w")).passages.status()
    assert (status.embedding_model, status.by_status) == ("small", {"enriched": 2})
    await after.close()


async def test_reindexing_keeps_other_workspaces_of_similar_names(build: Build, tmp_path: Path) -> None:
    store = build()
    for name in ("w", "w.reindexing", "w.outdated"):
        await (await store.open(name)).passages.save_documents([OTTER])
    await store.reindex("w", lambda _: None)
    for name in ("w", "w.reindexing", "w.outdated"):
        assert (await (await store.open(name)).passages.status()).documents == 1
    await store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w", "w.outdated", "w.reindexing"]


async def test_documents_saved_during_a_reindex_wait_and_are_kept(build: Build) -> None:
    store, other = build(), build()
    await (await store.open("w")).passages.save_documents([OTTER])
    writer = (await other.open("w")).passages
    reindexing = asyncio.create_task(store.reindex("w", lambda _: None))
    await asyncio.sleep(0.05)
    assert (await writer.save_documents([PUMP]))[0].status == "indexed"
    assert await reindexing == 1
    assert (await (await store.open("w")).passages.status()).documents == 2
    await store.close()
    await other.close()


@pytest.mark.parametrize("stage", ["embed", "enrich"])
async def test_work_in_flight_during_a_reindex_does_not_bring_vectors_of_the_old_model(
    build: Build, tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = build(), build(default="large", embedding_model="large")
    library, indexer = (await store.open("w")).documents, (await store.open("w")).work
    tasks = {task.stage: task for task in (await library.accept(OTTER)).tasks}
    started, go_on = asyncio.Event(), asyncio.Event()
    kind, name = (LetterEmbedder, "embed") if stage == "embed" else (Draft, "extract")
    original = getattr(kind, name)

    async def slow(self: Any, *given: Any) -> Any:
        done = await original(self, *given)
        if getattr(self, "name", "small") == "small" and not started.is_set():
            started.set()
            await go_on.wait()
        return done

    monkeypatch.setattr(kind, name, slow)
    working = asyncio.create_task((indexer.embed if stage == "embed" else indexer.extend_graph)(tasks[stage]))
    await started.wait()
    assert await other.reindex("w", lambda _: None) == 1
    before = vectors(tmp_path)
    go_on.set()
    await asyncio.gather(working, return_exceptions=True)
    assert vectors(tmp_path) == before
    assert {size for _, size in before} == {48}
    for task in tasks.values():
        await indexer.embed(task) if task.stage == "embed" else await indexer.extend_graph(task)
    assert vectors(tmp_path) == before
    repository = (await store.open("w")).passages
    assert (await repository.status()).embedding_model == "large"
    assert (await repository.retrieve("what do otters eat?", limit=1))[0].title == "Sea otter"
    await store.close()
    await other.close()


async def test_when_two_models_create_a_store_at_once_the_second_is_refused(build: Build, tmp_path: Path) -> None:
    small, large = build(embedding_model="small"), build(embedding_model="large")
    library = (await small.open("w")).documents
    first, second = [(await library.accept(source)).tasks[0] for source in (OTTER, PUMP)]
    late = (await large.open("w")).work
    assert await (await large.open("w")).documents.document(first.document_id) is not None
    await (await small.open("w")).work.embed(first)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="small"):
            await late.embed(second)
    assert {size for _, size in vectors(tmp_path)} == {16}
    await small.close()
    await large.close()


@pytest.mark.parametrize("known", [True, False])
async def test_a_question_and_its_record_open_a_store_once(
    build: Build, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    store, other = build(), build()
    await (await other.open("w")).passages.save_documents([OTTER])
    repository = (await store.open("w")).passages
    if known:
        await repository.retrieve("what do otters eat?", limit=1)
        await other.reindex("w", lambda _: None)
    await other.close()
    opened: list[Store] = []

    def late(kind: type, name: str, note: Callable[[Any], object] = id) -> None:
        """As a store on a server answers."""
        original = getattr(kind, name)

        async def method(*given: Any, **named: Any) -> Any:
            done = await original(*given, **named)
            note(done)
            await asyncio.sleep(0.01)
            return done

        monkeypatch.setattr(kind, name, method)

    late(StoreOpener, "open", opened.append)
    late(Store, "is_replaced")
    late(SqliteBackend, "has_store")
    await asyncio.gather(
        repository.save_query(Query("q", "what?")), repository.retrieve("what do otters eat?", limit=1)
    )
    assert await repository.get_query("q")
    await store.close()
    assert len(opened) == 1
    assert open_stores() == set()


def vectors(home: Path) -> list[tuple[str, int]]:
    """The id and the dimensions of each vector of w."""
    with closing(sqlite3.connect(home / "w" / "store.sqlite3")) as store:
        return sorted(store.execute("SELECT id, length(vector) / 4 FROM vector").fetchall())


async def test_reindexing_keeps_every_document_and_its_metadata(build: Build) -> None:
    store = build()
    library, indexer = (await store.open("w")).documents, (await store.open("w")).work
    for source, enrich in ((OTTER, True), (PUMP, False), (replace(PUMP, text="Pumps are warm."), False)):
        tasks = (await library.accept(replace(source, metadata={"team": "x"}), enrich=enrich, track="t")).tasks
        for task in tasks:
            if task.stage == "embed":
                await indexer.embed(task)
            else:
                await indexer.annotate(task, [{"keywords": ["kelp"]}], {"summary": "Otters."})
                await indexer.extend_graph(task)
    # Now two documents have the same text under two names.
    twin = await library.accept(replace(PUMP, text=OTTER.text), enrich=False)
    assert twin.outcome == "changed"
    await indexer.embed(twin.tasks[0])
    waiting = await library.accept(SourceText("late.md", "Kelp grows fast."))
    await (await store.open("w")).passages.save_query(Query("q", "what?"))
    before = await known(library)
    assert await store.reindex("w", lambda _: None) == 3
    library = (await store.open("w")).documents
    assert await known(library) == before
    assert await library.restart() == [task for task in waiting.tasks if task.stage == "enrich"]
    repository = (await store.open("w")).passages
    assert await repository.get_query("q") is not None
    assert (await repository.status()).passages == 3
    await store.close()


async def test_a_rebuilt_store_that_lacks_a_document_does_not_replace_the_old_one(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = build()
    await (await store.open("w")).passages.save_documents([OTTER, PUMP])
    copy = Ledger.copy_document_from

    async def forgets(fresh: Ledger, old: Ledger, identifier: str) -> None:
        if (await old.names())[identifier] != PUMP.name:
            await copy(fresh, old, identifier)

    monkeypatch.setattr(Ledger, "copy_document_from", forgets)
    with pytest.raises(ServiceUnavailable, match="as it was"):
        await store.reindex("w", lambda _: None)
    assert (await (await store.open("w")).passages.status()).documents == 2
    await store.close()


async def known(library: Library) -> list[object]:
    """Return the records of all documents without their progress and times."""
    records, _ = await library.documents()
    return [
        (
            replace(record, parts=tuple(replace(part, embedded=True, enriched_at=None) for part in record.parts)),
            await library.passages(record.id),
            await library.source(record.id),
        )
        for record in records
    ]


async def test_a_failed_update_keeps_the_version_that_was_there(build: Build) -> None:
    store = build()
    await (await store.open("w")).passages.save_documents([OTTER])
    await store.close()
    silent = build(embedder=SilentEmbedder("small", 16))
    repository = (await silent.open("w")).passages
    (outcome,) = await repository.save_documents(
        [SourceText("otter.md", "An entirely new text on otters.", "Sea otter")]
    )
    assert (outcome.status, outcome.reason) == ("failed", "no answer")
    await silent.close()
    store = build()
    repository = (await store.open("w")).passages
    assert "urchins" in (await repository.retrieve("what do otters eat?", limit=1))[0].content
    assert (await repository.status()).by_status == {"failed": 1}
    await store.close()


async def test_two_homes_with_a_workspace_of_the_same_name_index_at_the_same_time(build: Build, tmp_path: Path) -> None:
    one, two = build(home=tmp_path / "one"), build(home=tmp_path / "two")
    texts = [SourceText(f"n{i}.md", f"Note {i} is about topic {i * 7}.") for i in range(6)]
    first, second = await asyncio.gather(
        (await one.open("w")).passages.save_documents(texts), (await two.open("w")).passages.save_documents(texts)
    )
    assert {outcome.status for outcome in (*first, *second)} == {"indexed"}
    await one.close()
    await two.close()


async def test_a_query_is_not_recorded_while_another_process_writes(build: Build, tmp_path: Path) -> None:
    store = build()
    repository = (await store.open("w")).passages
    await repository.save_documents([OTTER])
    with sqlite3.connect(tmp_path / "w" / "store.sqlite3", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ServiceUnavailable, match="recorded"):
            await repository.save_query(Query("q", "what?"))
        other.execute("ROLLBACK")
    await repository.save_query(Query("q \ud800", "half \ud83d a pair"))
    assert (await repository.get_query("q \ud800")) is not None
    await store.close()


async def test_a_store_of_another_format_is_a_clear_error(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with sqlite3.connect(tmp_path / "w" / "store.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(ServiceUnavailable, match="format 99"):
        await (await build().open("w")).passages.status()


async def test_a_file_that_is_no_store_is_a_clear_error(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "store.sqlite3").write_bytes(b"this is not a database, it is a text file" * 100)
    with pytest.raises(ServiceUnavailable, match=r"damaged.*ingest again"):
        await (await build().open("w")).passages.status()


async def indexed(build: Build) -> None:
    store = build()
    await (await store.open("w")).passages.save_documents([OTTER])
    await store.close()


async def still_intact(build: Build) -> bool:
    store = build()
    status = await (await store.open("w")).passages.status()
    await store.close()
    return status.documents == 1


async def test_an_intact_store_that_cannot_be_opened_is_not_to_be_moved_away(build: Build, tmp_path: Path) -> None:
    await indexed(build)
    (tmp_path / "w" / "store.sqlite3-wal").mkdir()
    store = build()
    with pytest.raises(ServiceUnavailable, match=r"workspace w cannot be used now: .*Check the permissions") as refused:
        await (await store.open("w")).passages.status()
    assert not re.search("damaged|move", refused.value.message, re.IGNORECASE)
    (tmp_path / "w" / "store.sqlite3-wal").rmdir()
    assert (await (await store.open("w")).passages.status()).documents == 1
    await store.close()


@pytest.mark.parametrize(
    "code",
    [
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    ],
)
async def test_a_problem_with_the_location_is_not_called_damage(
    build: Build, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    await indexed(build)
    error = sqlite3.OperationalError("as SQLite says")
    error.sqlite_errorcode = code

    def refused(_: sqlite3.Connection) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(database, "migrate", refused)
        with pytest.raises(ServiceUnavailable) as failed:
            await (await build().open("w")).passages.status()
    assert failed.value.component == "knowledge_base"
    assert failed.value.message.startswith("The store of workspace w cannot be used now: as SQLite says.")
    assert not re.search("damaged|move", failed.value.message, re.IGNORECASE)
    assert await still_intact(build)


@pytest.mark.parametrize("part", ["baked.json", "w/store.sqlite3"])
async def test_a_home_that_may_not_be_read_is_a_clear_error(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    await indexed(build)
    stat, opened = Path.stat, Path.open

    def guarded(original: Any) -> Any:
        def call(self: Path, *given: Any, **named: Any) -> Any:
            if self == tmp_path / part:
                raise PermissionError(13, "Permission denied", str(self))
            return original(self, *given, **named)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", guarded(stat))
        patched.setattr(Path, "open", guarded(opened))
        patched.setattr(Path, "exists", lambda self, **_: bool(self.stat()))
        with pytest.raises(ServiceUnavailable, match=r"Permission denied. Check RAG_HOME") as refused:
            await (await build().open("w")).passages.status()
    assert refused.value.component == "knowledge_base"
    assert "damaged" not in refused.value.message
    assert await still_intact(build)


async def test_a_home_that_cannot_be_a_folder_is_a_clear_error(build: Build, tmp_path: Path) -> None:
    (tmp_path / "w").write_text("a file")
    with pytest.raises(ServiceUnavailable, match="RAG_HOME"):
        await (await build().open("w")).passages.save_documents([OTTER])


async def test_the_oldest_queries_are_forgotten(build: Build) -> None:
    store = build()
    repository = (await store.open("w")).passages
    await repository.save_documents([OTTER])
    for number in range(5):
        await repository.save_query(Query(f"q{number}", "what?"))
    kept = [number for number in range(5) if await repository.get_query(f"q{number}")]
    assert kept == [2, 3, 4]
    await store.close()


def brought(home: dict[str, str]) -> None:
    from cragside.bootstrap import Container
    from cragside.settings import load_settings

    async def bring() -> None:
        container = Container(load_settings(home))
        await (await container.workspaces.open("default")).passages.save_documents([PUMP])
        await container.close()

    asyncio.run(bring())


async def test_writes_of_another_process_are_found_without_reopening(tmp_path: Path) -> None:
    from cragside.bootstrap import Container
    from cragside.settings import load_settings

    home = {"RAG_HOME": str(tmp_path / "home")}
    container = Container(load_settings(home))
    repository = (await container.workspaces.open("default")).passages
    await repository.save_documents([OTTER])
    assert len(await repository.retrieve("what is a heat pump?", limit=5)) <= 1
    process = forked(brought, home)
    await asyncio.to_thread(process.join)
    assert process.exitcode == 0
    assert (await repository.retrieve("what is a heat pump?", limit=5))[0].title == "Heat pump"
    await container.close()


async def asked(store: Workspaces, workspace: str) -> int:
    """As one request: the documents of a workspace."""
    return (await (await store.open(workspace)).passages.status()).documents


async def filled(store: Workspaces, workspace: str) -> None:
    """As one request: a document of a workspace."""
    await (await store.open(workspace)).passages.save_documents([OTTER])


@pytest.mark.attack("exhausted resources")
async def test_the_pool_closes_stores_at_its_limit_and_reopens_them(build: Build) -> None:
    store = build(most_open=3)
    for number in range(9):
        await asyncio.create_task(filled(store, f"w{number}"))
        assert len(open_stores()) <= 3
    assert open_stores() == {"w6", "w7", "w8"}
    assert await asyncio.gather(*[asyncio.create_task(asked(store, f"w{number}")) for number in range(9)]) == [1] * 9
    assert len(open_stores()) == 3
    assert len(await store.names()) == 9
    await store.close()
    assert open_stores() == set()


@pytest.mark.attack("exhausted resources")
async def test_the_least_recently_used_store_is_closed_first(build: Build) -> None:
    store = build(most_open=2)
    for name in ("a", "b", "c"):
        await asyncio.create_task(filled(store, name))
    for name in ("b", "a"):
        await asyncio.create_task(asked(store, name))
    assert open_stores() == {"a", "b"}
    await store.close()


@pytest.mark.attack("exhausted resources")
async def test_stores_in_use_stay_open_and_requests_for_another_wait(build: Build) -> None:
    store = build(most_open=2)
    for name in ("a", "b", "c"):
        await asyncio.create_task(filled(store, name))
    released, begun = asyncio.Event(), asyncio.Queue[str]()

    async def works(name: str) -> int:
        repository = (await store.open(name)).passages
        assert (await repository.status()).documents == 1
        begun.put_nowait(name)
        await released.wait()
        return (await repository.status()).documents

    working = [asyncio.create_task(works(name)) for name in ("a", "b")]
    assert {await begun.get(), await begun.get()} == {"a", "b"}
    waiting = asyncio.create_task(asked(store, "c"))
    await asyncio.wait([waiting], timeout=0.05)
    assert not waiting.done()
    assert open_stores() == {"a", "b"}
    released.set()
    assert await asyncio.gather(*working, waiting) == [1, 1, 1]
    await store.close()


@pytest.mark.attack("exhausted resources")
async def test_waiting_too_long_for_a_store_asks_the_client_to_retry(build: Build) -> None:
    store = build(most_open=1, patience=0.05)
    for name in ("a", "b"):
        await asyncio.create_task(filled(store, name))
    repository = (await store.open("b")).passages
    assert (await repository.status()).documents == 1  # this task uses it from now on
    for _ in range(2):
        with pytest.raises(ServiceUnavailable, match="Too many workspaces are in use"):
            await asyncio.create_task(asked(store, "a"))
    assert (await repository.status()).documents == 1
    # This task asks for another one, so that it is done with the first.
    assert await asked(store, "a") == 1
    await store.close()


@pytest.mark.attack("exhausted resources")
async def test_a_tenant_with_many_workspaces_waits_like_the_others(build: Build) -> None:
    store, turns = build(most_open=2), list[str]()
    names = [f"w{number}" for number in range(8)]
    for name in [*names, "other"]:
        await asyncio.create_task(filled(store, name))

    async def asks(name: str) -> None:
        await asked(store, name)
        turns.append(name)

    flood = [asyncio.create_task(asks(name)) for name in names]
    await asyncio.sleep(0)
    quiet = asyncio.create_task(asks("other"))
    late = [asyncio.create_task(asks(name)) for _ in range(5) for name in names]
    await asyncio.gather(*flood, quiet, *late)
    assert len(set(turns[: turns.index("other")])) <= len(names)
    assert len(turns) == 49
    await store.close()


async def test_a_workspace_that_is_prepared_is_not_in_use(build: Build) -> None:
    store = build(most_open=1, patience=10)
    for name in ("a", "b"):
        await asyncio.create_task(filled(store, name))
    await store.prepare("a")
    assert await asyncio.create_task(asked(store, "b")) == 1
    await store.close()


async def test_closing_a_store_to_make_room_completes_even_if_the_waiter_gives_up(build: Build) -> None:
    store = build(most_open=1, patience=0.05)
    await asyncio.create_task(filled(store, "a"))
    ledger = (await asyncio.create_task(store_of(store, "a"))).ledger
    tidied, close = asyncio.Event(), ledger.driver.close

    async def slowly() -> None:
        await tidied.wait()
        await close()

    ledger.driver.close = slowly  # type: ignore[method-assign]
    with pytest.raises(ServiceUnavailable, match="Too many workspaces"):
        await asyncio.create_task(filled(store, "b"))
    assert open_stores() == {"a"}
    tidied.set()
    await store.close()
    assert open_stores() == set()


async def opened(store: Workspaces, workspace: str) -> Any:
    return (await store.open(workspace)).passages
