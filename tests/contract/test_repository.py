"""The knowledge base port: the fake and the real LightRAG on every database keep the same contract."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.query import Query, SimilaritySearch
from cragside.ports.rag_repository import RagRepository
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from tests.fakes import FakeRepository
from tests.services.backends import BACKENDS, made

OTTER = SourceText(
    "sea/otter.md", "# Sea otter\n\nSea otters eat sea urchins and so protect the kelp forest.", "Sea otter"
)
PUMP = SourceText("heat pump.md", "# Heat pump\n\nA heat pump moves heat from a cold place to a warm one.", "Heat pump")
PYTHON = SourceText("python.md", "# Python\n\nGuido van Rossum released the Python language in 1991.", "Python")


@pytest.fixture(params=["fake", *BACKENDS])
async def repository(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RagRepository]:
    if request.param == "fake":
        yield FakeRepository()
        return
    with made(request) as backend:
        container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
        yield (await container.workspaces.open("default")).passages
        await container.close()


async def test_an_empty_store_has_nothing(repository: RagRepository) -> None:
    assert await repository.retrieve("what do otters eat?", limit=5) == []
    assert await repository.get_relevant_documents("what do otters eat?") == []
    status = await repository.status()
    assert (status.documents, status.passages) == (0, 0)


async def test_a_saved_document_is_retrieved_with_its_title_and_file(repository: RagRepository) -> None:
    outcomes = await repository.save_documents([OTTER, PUMP, PYTHON])
    assert [(o.name, o.status, o.passages) for o in outcomes] == [
        ("sea/otter.md", "indexed", 1),
        ("heat pump.md", "indexed", 1),
        ("python.md", "indexed", 1),
    ]
    best = (await repository.retrieve("what do sea otters eat?", limit=2))[0]
    assert best.title == "Sea otter"
    assert best.metadata["filename"] == "sea/otter.md"
    assert best.source == "local"
    assert "urchins" in best.content
    assert (await repository.status()).documents == 3


async def test_relevant_documents_are_graded_above_the_threshold(repository: RagRepository) -> None:
    await repository.save_documents([OTTER, PUMP])
    relevant = await repository.get_relevant_documents("what do sea otters eat?", threshold=0.5)
    assert [document.title for document in relevant] == ["Sea otter"]
    assert relevant[0].score is not None
    assert relevant[0].score > 0.5


async def test_the_limit_holds(repository: RagRepository) -> None:
    await repository.save_documents([OTTER, PUMP, PYTHON])
    assert len(await repository.retrieve("heat and otters and python", limit=2)) <= 2


async def test_the_same_text_is_indexed_once_and_a_changed_one_replaces_it(repository: RagRepository) -> None:
    await repository.save_documents([OTTER, PUMP])
    changed = SourceText(PUMP.name, "# Heat pump\n\nA heat pump uses a refrigerant such as propane.", "Heat pump")
    outcomes = await repository.save_documents([OTTER, changed])
    assert [o.status for o in outcomes] == ["unchanged", "updated"]
    assert (await repository.status()).documents == 2
    contents = [d.content for d in await repository.retrieve("heat pump refrigerant", limit=5)]
    assert any("propane" in content for content in contents)
    assert not any("cold place" in content for content in contents)


async def test_the_same_text_under_two_names_leaves_no_failure_however_often_it_is_saved(
    tmp_path: Path, backend: Backend
) -> None:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
    store = (await container.workspaces.open("default")).passages
    twice = [OTTER, SourceText("copy.md", OTTER.text, OTTER.title)]
    for _ in range(3):
        assert {outcome.status for outcome in await store.save_documents(twice)} <= {"indexed", "unchanged"}
        assert (await store.status()).by_status == {"enriched": 2}
    await container.close()


async def test_a_query_is_remembered_under_its_id(repository: RagRepository) -> None:
    await repository.save_documents([OTTER])
    query = Query("q1", "what do otters eat?")
    await repository.save_query(query)
    remembered = await repository.get_query("q1")
    assert remembered is not None
    assert (remembered.text, remembered.created_at) == (query.text, query.created_at)
    assert await repository.get_query("q2") is None


@pytest.mark.parametrize(
    "query",
    [
        "?",
        "a",
        "海",
        "\x00",
        "' OR 1=1 --",
        '"unbalanced',
        "NEAR(a b)",
        "* AND -",
        "what " * 4000,
        "\ud83d",
        "🦦",
        "   x   ",
    ],
)
async def test_strange_queries_are_answered(repository: RagRepository, query: str) -> None:
    await repository.save_documents([OTTER])
    assert len(await repository.retrieve(query, limit=3)) <= 3


async def test_readers_are_served_while_a_writer_works(repository: RagRepository) -> None:
    await repository.save_documents([OTTER])
    texts = [SourceText(f"d{i}.md", f"# Note {i}\n\nNote number {i} is about topic {i * 7}.") for i in range(10)]
    writing = asyncio.create_task(repository.save_documents(texts))
    while not writing.done():
        found = await repository.retrieve("what do sea otters eat?", limit=1)
        assert found[0].title == "Sea otter"
        await asyncio.sleep(0)
    assert {outcome.status for outcome in await writing} == {"indexed"}


async def test_the_version_changes_only_with_searchable_content(repository: RagRepository) -> None:
    seen = [await repository.version()]
    await repository.save_documents([OTTER])
    seen.append(await repository.version())
    await repository.save_documents([replace(OTTER, text="# Sea otter\n\nSea otters sleep in kelp.")])
    seen.append(await repository.version())
    await repository.save_query(Query("q1", "what do otters eat?"))
    await repository.retrieve("what do otters eat?", limit=3)
    await repository.similar(SimilaritySearch("what do otters eat?"))
    assert await repository.version() == seen[-1]
    await repository.save_documents([PUMP])
    seen.append(await repository.version())
    assert len(set(seen)) == 4
