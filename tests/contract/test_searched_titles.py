"""Passages are found by the title of their document, in words and by their vectors, and stay as they are."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.query import SimilaritySearch
from cragside.ports.embedder import Vectors
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.chunking import Entry, Piece
from cragside.store.driver import PartVectors
from tests.contract.opened_storages import opened_ledger
from tests.contract.test_similarity import searchable

BAKE = "Bake it for 35 minutes at 170 degrees."
NOTES = [SourceText(f"{number}.txt", f"Stir it for {number} minutes.", f"Soup {number}") for number in range(20)]
TART = SourceText("a.txt", BAKE, "Quince tart")


class Recorder(WordLlamaEmbedder):
    """Remembers the texts that it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return await super().embed(texts)


@pytest.fixture
def embedder() -> Recorder:
    return Recorder()


@pytest.fixture
async def container(tmp_path: Path, backend: Backend, embedder: Recorder) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend, embedder=embedder)
    yield container
    await container.close()


async def cosine(container: Container, text: str) -> float:
    repository = (await container.workspaces.open("default")).passages
    (found,) = await repository.similar(SimilaritySearch(text, threshold=-1.0, limit=1))
    assert found.content == BAKE
    return found.similarity or 0.0


async def test_a_passage_is_found_by_a_word_that_only_its_title_has(container: Container) -> None:
    await searchable(container, *NOTES, TART)
    repository = (await container.workspaces.open("default")).passages
    best = (await repository.retrieve("How long for the quince?", limit=3))[0]
    assert (best.content, best.title, best.metadata["filename"]) == (BAKE, "Quince tart", "a.txt")


async def test_the_vector_is_that_of_the_title_and_the_text(container: Container) -> None:
    await searchable(container, TART)
    assert await cosine(container, f"Quince tart\n{BAKE}") == pytest.approx(1.0, abs=1e-5)


async def test_a_document_that_has_only_a_name_is_searched_as_it_is(container: Container) -> None:
    await searchable(container, SourceText("quince-tart.txt", BAKE))
    assert await cosine(container, BAKE) == pytest.approx(1.0, abs=1e-5)


async def test_vectors_are_kept_by_all_that_was_embedded(container: Container, embedder: Recorder) -> None:
    await searchable(container, TART, SourceText("b.txt", BAKE, "Apple tart"))
    assert sorted(embedder.asked) == [f"Apple tart\n{BAKE}", f"Quince tart\n{BAKE}"]
    library = (await container.workspaces.open("default")).documents
    indexer = (await container.workspaces.open("default")).work
    for task in await library.restart(force=True):
        if task.stage == "embed":
            await indexer.embed(task)
    assert len(embedder.asked) == 2


async def test_another_title_for_the_same_text_is_searched_once_the_worker_has_embedded_it(
    container: Container,
) -> None:
    library = (await container.workspaces.open("default")).documents
    indexer = (await container.workspaces.open("default")).work
    await searchable(container, TART)
    assert not (await library.accept(TART, enrich=False)).tasks
    named = SourceText("a.txt", BAKE, "Apple tart")
    brought = await library.accept(named, enrich=False)
    assert (brought.outcome, [task.stage for task in brought.tasks]) == ("unchanged", ["embed"])
    assert await cosine(container, f"Quince tart\n{BAKE}") == pytest.approx(1.0, abs=1e-5)
    for task in brought.tasks:
        await indexer.embed(task)
    assert await cosine(container, f"Apple tart\n{BAKE}") == pytest.approx(1.0, abs=1e-5)
    assert not (await library.accept(named, enrich=False)).tasks


async def test_a_version_that_comes_back_with_another_title_is_embedded_with_it(
    tmp_path: Path, backend: Backend
) -> None:
    def entry(digest: str, title: str) -> Entry:
        source = SourceText("a.txt", digest, title)
        return Entry("doc-a", digest, digest, source, [Piece(digest, 1, None, "", ())], part_passages=20, enrich=False)

    async with opened_ledger(backend, tmp_path) as ledger:
        await ledger.enter(entry("one", "Tart"))
        (task,) = await ledger.tasks()
        part = await ledger.part(task)
        assert part is not None
        assert part.title == "Tart"
        vectors = WordLlamaEmbedder().encode(["Tart one"])
        (passage,) = await ledger.chunk_ids(part)
        rows = {passage: {"content": "one", "full_doc_id": "doc-a", "file_path": "a.txt"}}
        await ledger.enter_vectors([PartVectors("doc-a", part, rows, vectors)], "m")
        await ledger.enter(entry("two", "Tart"))
        await ledger.enter(entry("one", "Tart"))
        again = await ledger.part(task)
        assert again is not None
        assert again.embedded
        await ledger.enter(entry("two", "Tart"))
        await ledger.enter(entry("one", "Cake"))
        again = await ledger.part(task)
        assert again is not None
        assert (again.title, again.embedded) == ("Cake", False)
