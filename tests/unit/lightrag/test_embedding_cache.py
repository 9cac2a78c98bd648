"""The embedding cache: what survives, what is dropped, and when the model is asked."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.embedder import Vectors
from cragside.store import embeddings
from cragside.store.embeddings import CachedEmbedder
from cragside.store.ledger import Ledger
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import SqliteDriver
from cragside.store.workspaces import Workspaces
from tests.embedded_workspaces import embedded_workspaces
from tests.fakes import WordGrader

OTTER = SourceText("otter.md", "Sea otters eat urchins in the kelp forest.")
CHANGED = SourceText("otter.md", "Sea otters sleep on their backs.")
PUMP = SourceText("pump.md", "A heat pump moves heat from a cold place to a warm one.")


class CountingEmbedder:
    """Notes every text it embeds; `room` is how many it embeds before it fails."""

    in_process = False

    def __init__(self, name: str = "model", dimensions: int = 8, room: float = float("inf")) -> None:
        self.name = name
        self.dimensions = dimensions
        self.room = room
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.room -= len(texts)
        if self.room < 0:
            raise ServiceUnavailable("embedder", "The model is gone.")
        self.asked += texts
        rows = np.array([[len(text) + 1, *map(float, range(1, self.dimensions))] for text in texts], np.float32)
        rows = rows.reshape(len(texts), self.dimensions)
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    ledger = Ledger(SqliteDriver(Database.acquire(tmp_path / "alone")), "alone", str.lower)
    yield ledger
    ledger.driver.release()


def opened(home: Path, embedder: CountingEmbedder) -> Workspaces:
    async def open_embedder(name: str | None) -> CountingEmbedder:
        return embedder

    return embedded_workspaces(home, open_embedder=open_embedder, ranker=WordGrader())


async def make_searchable(workspaces: Workspaces, source: SourceText) -> str:
    library, indexer = (await workspaces.open("w")).documents, (await workspaces.open("w")).work
    acceptance = await library.accept(source, enrich=False)
    for task in acceptance.tasks:
        await indexer.embed(task)
    return acceptance.record.id


def kept(folder: Path) -> list[str]:
    """The documents that the rows of the cache were made for."""
    database = Database.acquire(folder)
    try:
        return sorted(row[0] for row in database.all("SELECT document_id FROM embedding"))
    finally:
        database.release()


async def test_vectors_are_the_models_in_the_order_of_the_texts(ledger: Ledger) -> None:
    model = CountingEmbedder()
    cached = CachedEmbedder(model, ledger)
    texts = ["one", "three", "one", "eleven", "\ud83d"]
    expected = await CountingEmbedder().embed(texts)
    assert np.array_equal(await cached.embed(texts), expected)
    await cached.keep("d", ["three", "\ud83d"])
    asked = len(model.asked)
    assert np.array_equal(await cached.embed(texts), expected)
    assert model.asked[asked:] == ["one", "eleven"]
    assert (await cached.embed([])).shape[0] == 0


async def test_questions_whose_vectors_are_made_are_not_embedded_again(ledger: Ledger) -> None:
    model = CountingEmbedder()
    cached = CachedEmbedder(model, ledger)
    vectors = await cached.embed_questions(["one", "three"])
    with cached.made({"one": vectors[0], "three": vectors[1]}):
        assert np.array_equal(await cached.embed_questions(["three", "one"]), vectors[::-1])
        assert model.asked == ["one", "three"]
        await cached.embed_questions(["one", "eleven"])
    await cached.embed_questions(["one"])
    assert model.asked == ["one", "three", "one", "eleven", "one"]


class SlowEmbedder(CountingEmbedder):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await self.let.wait()
        return await super().embed(texts)


async def test_who_can_go_on_without_a_vector_waits_as_long_as_is_said_and_others_for_the_model(ledger: Ledger) -> None:
    model = SlowEmbedder()
    cached = CachedEmbedder(model, ledger, patience=0.1)
    waiting = asyncio.create_task(cached.embed_questions(["one"]))
    with pytest.raises(ServiceUnavailable, match=r"No vector of the question within 0.1 s") as failed:
        await cached.embed_in_time(["one"])
    assert failed.value.component == "embedder"
    assert not waiting.done()
    model.let.set()
    assert (await waiting).shape == (1, 8)


async def test_an_embedding_without_a_document_is_not_cached(ledger: Ledger) -> None:
    model = CountingEmbedder()
    cached = CachedEmbedder(model, ledger)
    await cached.embed(["a question"])
    await cached.embed(["a question"])
    assert model.asked == ["a question"] * 2


async def test_a_part_that_failed_half_way_resumes(ledger: Ledger) -> None:
    texts = [f"passage {n}" for n in range(70)]
    model = CountingEmbedder(room=40)
    with pytest.raises(ServiceUnavailable):
        await CachedEmbedder(model, ledger).keep("d", texts)
    done = list(model.asked)
    assert done
    again = CountingEmbedder()
    await CachedEmbedder(again, ledger).keep("d", texts)
    assert sorted(done + again.asked) == sorted(texts)


async def test_another_model_never_gets_a_vector(ledger: Ledger) -> None:
    await CachedEmbedder(CountingEmbedder("one"), ledger).keep("d", ["text"])
    for other in (CountingEmbedder("two"), CountingEmbedder("one", dimensions=5)):
        cached = CachedEmbedder(other, ledger)
        assert (await cached.embed(["text"])).shape == (1, other.dimensions)
        await cached.keep("d", ["text"])
        assert other.asked == ["text", "text"]
        assert cached.name == other.name


async def test_the_oldest_make_room(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "MAX_BYTES", 10 * 8 * 4)
    cached = CachedEmbedder(CountingEmbedder(), ledger)
    for start in range(0, 40, 5):
        await cached.keep("d", [f"passage {n}" for n in range(start, start + 5)])
    assert kept(tmp_path / "alone") == ["d"] * 10
    fresh = CountingEmbedder(room=0)
    assert (await CachedEmbedder(fresh, ledger).embed([f"passage {n}" for n in range(30, 40)])).shape == (10, 8)


async def test_cached_vectors_allow_indexing_without_the_model(
    tmp_path: Path,
) -> None:
    first = opened(tmp_path, CountingEmbedder())
    identifier = await make_searchable(first, OTTER)
    await first.close()
    dead = CountingEmbedder(room=0)
    second = opened(tmp_path, dead)
    library, indexer = (await second.open("w")).documents, (await second.open("w")).work
    tasks = [task for task in await library.restart(identifier, force=True) if task.stage == "embed"]
    assert tasks
    before = await library.document(identifier)
    assert before is not None
    assert not before.searchable
    for task in tasks:
        await indexer.embed(task)
    after = await library.document(identifier)
    assert after is not None
    assert after.searchable
    await second.close()


async def test_a_text_that_is_not_cached_waits_for_the_model(tmp_path: Path) -> None:
    workspaces = opened(tmp_path, CountingEmbedder(room=0))
    with pytest.raises(ServiceUnavailable) as raised:
        await make_searchable(workspaces, OTTER)
    assert raised.value.component == "embedder"
    await workspaces.close()


async def test_a_changed_text_drops_only_the_vectors_of_its_document(tmp_path: Path) -> None:
    model = CountingEmbedder()
    workspaces = opened(tmp_path, model)
    otter, pump = await make_searchable(workspaces, OTTER), await make_searchable(workspaces, PUMP)
    assert kept(tmp_path / "w") == sorted([otter, pump])
    library = (await workspaces.open("w")).documents
    await library.accept(OTTER, enrich=False)
    assert kept(tmp_path / "w") == sorted([otter, pump])
    await library.accept(CHANGED, enrich=False)
    assert kept(tmp_path / "w") == [pump]
    await make_searchable(workspaces, CHANGED)
    assert kept(tmp_path / "w") == sorted([otter, pump])
    await make_searchable(workspaces, OTTER)
    assert model.asked.count(OTTER.text) == 2
    await workspaces.close()


async def test_a_deleted_document_takes_its_vectors_along(tmp_path: Path) -> None:
    workspaces = opened(tmp_path, CountingEmbedder())
    otter, pump = await make_searchable(workspaces, OTTER), await make_searchable(workspaces, PUMP)
    assert await (await workspaces.open("w")).documents.delete(otter)
    assert kept(tmp_path / "w") == [pump]
    await workspaces.close()
