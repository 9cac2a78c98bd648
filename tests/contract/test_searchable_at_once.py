"""A short text is searchable when it is accepted, whatever happens to it meanwhile, on every database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cragside.bootstrap import Container
from cragside.domain.indexing import Acceptance
from cragside.domain.query import SimilaritySearch
from cragside.settings import load_settings
from cragside.store import part_indexer
from cragside.store.backends.interface import Backend
from cragside.store.ledger import Ledger
from cragside.store.library import Library
from cragside.store.part_indexer import PartIndexer
from tests.embedded_workspaces import store_of
from tests.indexing import ARMSTRONG, LONG, SMALL_PARTS, SWAN, found, text

QUESTION = "Whom did William Armstrong visit?"


@pytest.fixture
async def container(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    made = Container(load_settings({"RAG_HOME": str(tmp_path), **SMALL_PARTS}), backend=backend)
    yield made
    await made.close()


@pytest.fixture
async def library(container: Container) -> Library:
    return (await container.workspaces.open("w")).documents


@pytest.fixture
async def indexer(container: Container) -> PartIndexer:
    return (await container.workspaces.open("w")).work


def stages(acceptance: Acceptance) -> list[str]:
    return [task.stage for task in acceptance.tasks]


def before_the_vectors_are_written(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[Any]]) -> None:
    """Have something happen between the model's work and the transaction."""
    enter_vectors = part_indexer.enter_vectors

    async def late(*arguments: Any) -> None:
        await happens()
        await enter_vectors(*arguments)

    monkeypatch.setattr(part_indexer, "enter_vectors", late)


async def test_a_text_is_found_by_words_and_by_its_vectors_when_it_is_accepted(container: Container) -> None:
    accepted = await container.intake.text(text("a.md", ARMSTRONG), workspace="w")
    assert (accepted.record.status, accepted.record.enrichment, stages(accepted)) == (
        "searchable",
        "pending",
        ["enrich"],
    )
    assert (await container.queue.stats()).pending == 1
    assert await found(container, QUESTION) == [ARMSTRONG]
    passages = (await container.workspaces.open("w")).passages
    (near,) = await passages.similar(SimilaritySearch("who put lamps into the house?", limit=3))
    assert (near.content, near.similarity is not None) == (ARMSTRONG, True)
    assert await container.worker().run(until_idle=True) == {"done": 1}


async def test_each_part_of_a_text_is_searchable_at_once(container: Container) -> None:
    accepted = await container.intake.text(text("a.md", LONG), workspace="w")
    assert len(accepted.record.parts) > 1
    assert (accepted.record.searchable, stages(accepted)) == (True, ["enrich"] * len(accepted.record.parts))
    assert "bridge number 8" in " ".join(await found(container, "When was bridge number 8 built?"))


async def test_a_changed_text_replaces_the_earlier_one_at_once_and_its_graph_later(container: Container) -> None:
    await container.intake.text(text("a.md", ARMSTRONG), workspace="w")
    await container.worker().run(until_idle=True)
    changed = await container.intake.text(text("a.md", SWAN), workspace="w")
    assert (changed.outcome, changed.record.searchable, stages(changed)) == ("changed", True, ["embed", "enrich"])
    assert await found(container, QUESTION) == [SWAN]
    await container.worker().run(until_idle=True, sweep=False)
    graph = (await container.workspaces.open("w")).graph
    assert "Gateshead" in {each.name for each in await graph.search("", limit=50)}
    assert "Northumberland" not in {each.name for each in await graph.search("", limit=50)}


async def test_a_title_that_changes_is_searched_at_once(container: Container) -> None:
    await container.intake.text(text("a.md", ARMSTRONG), workspace="w")
    again = await container.intake.text(text("a.md", ARMSTRONG, title="Zeppelins of Friedrichshafen"), workspace="w")
    assert (again.outcome, again.record.searchable) == ("unchanged", True)
    assert await found(container, "zeppelins of Friedrichshafen") == [ARMSTRONG]


async def test_a_worker_and_a_request_with_one_task_write_its_vectors_once(
    container: Container, library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[object] = []
    both = asyncio.Barrier(2)
    before_the_vectors_are_written(monkeypatch, both.wait)
    enter = Ledger.enter_vectors

    async def counted(self: Ledger, *arguments: Any) -> None:
        writes.append(arguments)
        await enter(self, *arguments)

    monkeypatch.setattr(Ledger, "enter_vectors", counted)
    accepted = await library.accept(text("a.md", ARMSTRONG))
    async with asyncio.timeout(30):
        now, _ = await asyncio.gather(indexer.embed_at_once(accepted), indexer.embed(accepted.tasks[0]))
    assert (len(writes), now.record.searchable, stages(now)) == (1, True, ["enrich"])
    assert await found(container, QUESTION) == [ARMSTRONG]


async def test_texts_that_wait_for_the_same_lease_are_written_together(
    container: Container, library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = [await library.accept(text(f"{number}.md", ARMSTRONG)) for number in range(4)]
    writes: list[int] = []
    ready = asyncio.Barrier(6)
    before_the_vectors_are_written(monkeypatch, ready.wait)
    enter = Ledger.enter_vectors

    async def counted(self: Ledger, parts: Sequence[Any], model: str) -> None:
        writes.append(len(parts))
        await enter(self, parts, model)

    monkeypatch.setattr(Ledger, "enter_vectors", counted)
    again = accepted[0]  # a request that has the same task
    async with (await store_of(container.workspaces, "w")).accepting():
        sent = [asyncio.create_task(indexer.embed_at_once(each)) for each in (*accepted, again)]
        await ready.wait()
        await asyncio.sleep(0)
    assert [now.record.searchable for now in await asyncio.gather(*sent)] == [True] * 5
    assert writes == [4]
    assert await found(container, QUESTION) == [ARMSTRONG]


async def test_a_worker_that_gives_up_what_a_request_has_done_does_not_make_it_fail(
    library: Library, indexer: PartIndexer
) -> None:
    accepted = await library.accept(text("a.md", ARMSTRONG))
    now = await indexer.embed_at_once(accepted)
    await indexer.failed(accepted.tasks[0], "The model was away.")
    assert await library.document(accepted.record.id) == now.record
    assert await library.restart(failures=False) == list(now.tasks)


async def test_a_text_that_is_deleted_meanwhile_stays_deleted(
    container: Container, library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = await library.accept(text("a.md", ARMSTRONG))
    before_the_vectors_are_written(monkeypatch, lambda: library.delete(accepted.record.id))
    assert await indexer.embed_at_once(accepted) == accepted
    assert await library.documents() == ([], 0)
    assert await found(container, QUESTION) == []


async def test_a_text_that_is_replaced_meanwhile_is_not_found(
    container: Container, library: Library, indexer: PartIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = await library.accept(text("a.md", ARMSTRONG))
    with monkeypatch.context() as patched:
        before_the_vectors_are_written(patched, lambda: library.accept(text("a.md", SWAN)))
        assert await indexer.embed_at_once(accepted) == accepted
    assert await found(container, QUESTION) == []
    await container.worker().run(until_idle=True)
    assert await found(container, QUESTION) == [SWAN]


@pytest.mark.parametrize("others", [SWAN, ARMSTRONG])
async def test_of_two_requests_for_one_document_the_last_text_stays(container: Container, others: str) -> None:
    sent = [container.intake.text(text("a.md", each), workspace="w") for each in (ARMSTRONG, others)]
    accepted = await asyncio.gather(*sent)
    library = (await container.workspaces.open("w")).documents
    (record,), _ = await library.documents()
    assert record.searchable
    assert record.content_hash in {each.record.content_hash for each in accepted}
    source = await library.source(record.id)
    assert source is not None
    assert await found(container, QUESTION) == [source.text]
    await container.worker().run(until_idle=True)
    assert (await library.documents())[0][0].status == "enriched"


async def test_the_same_text_in_two_workspaces_is_found_in_each_alone(container: Container) -> None:
    await container.intake.text(text("a.md", ARMSTRONG), workspace="w")
    await container.intake.text(text("a.md", SWAN), workspace="v")
    assert await found(container, QUESTION) == [ARMSTRONG]
    passages = (await container.workspaces.open("v")).passages
    assert [each.content for each in await passages.retrieve(QUESTION, limit=8)] == [SWAN]
