"""The library and the part indexer: what was accepted is never lost, and work can be repeated at any moment."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.bootstrap import Container
from cragside.domain.dating import BEGINNING
from cragside.domain.document import Mark, SourceText
from cragside.domain.errors import NotFound, ProcessingError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import DocumentSort, Listing
from cragside.domain.knowledge import KnowledgeStatus
from cragside.domain.query import Condition, Filter, SimilaritySearch
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.library import Library
from cragside.store.part_indexer import PartIndexer
from tests.indexing import ARMSTRONG, LONG, SMALL_PARTS, SWAN, found, take, text, work
from tests.services.backends import BACKENDS, SERVERS, THROUGH_POOLER, made


def opened(home: Path, backend: Backend, **replacements: Any) -> Container:
    return Container(load_settings({"RAG_HOME": str(home), **SMALL_PARTS}), backend=backend, **replacements)


@pytest.fixture
async def container(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    container = opened(tmp_path, backend)
    yield container
    await container.close()


@pytest.fixture
async def library(container: Container) -> Library:
    return (await container.workspaces.open("w")).documents


@pytest.fixture
async def indexer(container: Container) -> PartIndexer:
    return (await container.workspaces.open("w")).work


async def test_asking_for_documents_of_an_unknown_workspace_leaves_no_trace(library: Library, tmp_path: Path) -> None:
    assert await library.documents() == ([], 0)
    assert await library.document("doc-x") is None
    assert await library.source("doc-x") is None
    assert await library.passages("doc-x") == []
    assert await library.passages_by_id(["x"]) == {}
    assert not await library.delete("doc-x")
    assert await library.restart() == []
    assert await library.counts() == {}
    assert await library.file_types() == {}
    assert list(tmp_path.iterdir()) == []


async def test_an_accepted_text_is_there_after_a_restart_with_its_tasks(
    library: Library, tmp_path: Path, backend: Backend
) -> None:
    source = text("a.md", LONG, title="Bridges", metadata={"team": "x"}, tier1={"pages": 2}, marks=(Mark(0, 1, "One"),))
    acceptance = await library.accept(source, track="t1")
    assert acceptance.outcome == "new"
    again = opened(tmp_path, backend)
    later = (await again.workspaces.open("w")).documents
    record = await later.sourced("a.md")
    assert record == acceptance.record
    assert record is not None
    assert (record.status, record.enrichment, record.metadata, record.tier1) == (
        "pending",
        "pending",
        {"team": "x"},
        {"pages": 2},
    )
    assert await later.source(record.id) == SourceText(
        "a.md", LONG, "Bridges", size=len(LONG), marks=(Mark(0, 1, "One"),), tier1={"pages": 2}, metadata={"team": "x"}
    )
    assert list(await later.restart()) == list(acceptance.tasks)
    assert await again.workspaces.names() == ["w"]
    await again.close()


async def test_a_long_text_has_parts_that_hold_all_its_passages_once(library: Library) -> None:
    record = (await library.accept(text("a.md", LONG))).record
    assert len(record.parts) > 1
    assert [part.first for part in record.parts[1:]] == [part.last + 1 for part in record.parts[:-1]]
    passages = await library.passages(record.id)
    assert [passage.index for passage in passages] == list(range(record.passages))
    by_part = [p for part in record.parts for p in await library.passages(record.id, part.number)]
    assert by_part == passages
    assert all(passage.text in LONG for passage in passages)


async def test_a_passage_knows_its_section_and_its_page_and_does_not_go_on_to_the_next(
    library: Library, indexer: PartIndexer, container: Container
) -> None:
    half = LONG.index("William Armstrong built bridge number 5")
    marks = (Mark(0, 1, "Early"), Mark(half, 2, "Late"))
    acceptance = await library.accept(text("a.pdf", LONG, marks=marks))
    await work(indexer, acceptance.tasks)
    for passage in await library.passages(acceptance.record.id):
        where = (2, "Late") if passage.text in LONG[half:] else (1, "Early")
        assert passage.text in LONG[half:] or passage.text in LONG[:half]
        assert (passage.page, passage.section) == where
    repository = (await container.workspaces.open("w")).passages
    best = (await repository.retrieve("Which bridge is number 8?", limit=1))[0]
    assert (best.metadata["page"], best.metadata["section"]) == (2, "Late")
    assert {"filename", "fileType", "chunkIndex", "totalChunks"} <= set(best.metadata)


async def test_a_passage_through_several_sections_is_cited_with_the_first_and_the_last(
    library: Library, indexer: PartIndexer, container: Container
) -> None:
    short = "Pumps lift water. Pumps run at night. Grease is applied in April."
    marks = (Mark(0, section="Introduction"), Mark(18, section="Operation"), Mark(38, section="Maintenance"))
    acceptance = await library.accept(text("pumps.md", short, marks=marks))
    await work(indexer, acceptance.tasks)
    (passage,) = await library.passages(acceptance.record.id)
    assert passage.section == "Introduction – Maintenance"
    assert passage.sections == ("Introduction", "Operation", "Maintenance")
    (best,) = await (await container.workspaces.open("w")).passages.retrieve("When is grease applied?", limit=1)
    assert best.metadata["section"] == "Introduction – Maintenance"


async def test_passages_are_counted_by_the_languages_that_their_annotations_have(
    library: Library, indexer: PartIndexer
) -> None:
    assert await library.languages() == {}
    first = await library.accept(text("a.md", ARMSTRONG))
    assert await library.languages() == {None: 1}
    trap = {"entities": [{"text": '\ud800 "language": "fr"', "label": "x"}], "language": "en"}
    for acceptance, tier2 in ((first, trap), (await library.accept(text("b.md", "1 2 3")), {"language": None})):
        embedding, enriching = acceptance.tasks
        await indexer.embed(embedding)
        await indexer.begin_enrichment(enriching)
        await indexer.annotate(enriching, [tier2], None)
    assert await library.languages() == {"en": 1, "": 1}
    await library.delete(first.record.id)
    assert await library.languages() == {"": 1}


async def test_embedding_makes_a_part_searchable_before_its_graph_exists(
    library: Library, indexer: PartIndexer, container: Container
) -> None:
    acceptance = await library.accept(text("a.md", ARMSTRONG))
    embedding, enriching = acceptance.tasks
    assert (embedding.stage, enriching.stage) == ("embed", "enrich")
    assert await found(container, "Who built Cragside?") == []
    await indexer.embed(embedding)
    assert await found(container, "Who built Cragside?") == [ARMSTRONG]
    record = await library.document(acceptance.record.id)
    assert record is not None
    assert (record.status, record.enrichment) == ("searchable", "pending")
    assert await indexer.begin_enrichment(enriching)
    assert (await library.counts()) == {"processing": 1}
    await indexer.annotate(enriching, [{"keywords": ["lamps"]}], {"summary": "A house."})
    await indexer.extend_graph(enriching)
    assert not await indexer.begin_enrichment(enriching)
    record = await library.document(acceptance.record.id)
    assert record is not None
    tier3 = {
        "summary": "A house.",
        "extraction": {"entities": 4, "relations": 4, "malformed": 0, "unusable": 0},
    }
    assert (record.status, record.parts[0].tier3, record.tier3) == ("enriched", tier3, tier3)
    (passage,) = await library.passages(record.id)
    assert (passage.tier2, passage.enrichment) == ({"keywords": ["lamps"]}, "enriched")
    assert await library.passages_by_id([passage.id, "nope"]) == {passage.id: (record, passage)}
    assert (await (await container.workspaces.open("w")).passages.status()).entities > 0


async def test_a_document_that_is_read_for_a_passage_has_the_beginning_of_its_text(
    library: Library, indexer: PartIndexer
) -> None:
    long = text("minutes.md", f"Minutes of 10 March 1863.\n\n{f'{ARMSTRONG} ' * 200}")
    acceptance = await library.accept(long)
    await work(indexer, acceptance.tasks)
    passages = await library.passages(acceptance.record.id)
    assert len(passages) > 1
    known = await library.passages_by_id([passages[-1].id])
    record, _ = known[passages[-1].id]
    assert record.beginning.startswith("Minutes of 10 March 1863.")
    assert len(passages[0].text.strip()) <= len(record.beginning) <= BEGINNING


async def test_accepting_a_text_again_updates_its_title_and_metadata(library: Library, indexer: PartIndexer) -> None:
    first = await library.accept(text("a.md", ARMSTRONG, title="Old", metadata={"team": "x", "year": 1863}))
    await work(indexer, first.tasks)
    again = await library.accept(text("a.md", ARMSTRONG, title="New", metadata={"team": "y"}))
    assert (again.outcome, [task.stage for task in again.tasks]) == ("unchanged", ["embed"])
    assert (again.record.title, again.record.metadata) == ("New", {"team": "y"})
    assert await library.document(first.record.id) == again.record
    assert again.record.updated_at > first.record.updated_at
    await work(indexer, again.tasks)
    same = await library.accept(text("a.md", ARMSTRONG, title="New", metadata={"team": "y"}))
    assert (same.outcome, list(same.tasks), same.record.status) == ("unchanged", [], "enriched")
    assert same.record.updated_at == again.record.updated_at
    other = await library.accept(text("a.md", ARMSTRONG, title="New", metadata={"team": "z"}))
    assert (list(other.tasks), other.record.metadata) == ([], {"team": "z"})


@pytest.mark.parametrize("content", [ARMSTRONG, SWAN])
async def test_two_tracks_with_one_name_have_separate_documents(library: Library, content: str) -> None:
    for _ in range(2):
        await library.accept(text("a.md", ARMSTRONG), track="one")
        await library.accept(text("a.md", content), track="two/b")
    for track, name, there in (("one", "a.md", ARMSTRONG), ("two/b", "a.md#two%2Fb", content)):
        (record,), total = await library.documents(track=track)
        assert (record.name, total) == (name, 1)
        assert (await library.source(record.id) or text("", "")).text == there
    assert await library.delete((await library.documents(track="one"))[0][0].id)
    assert (await library.accept(text("a.md", content), track="two/b")).outcome == "unchanged"


async def test_a_track_takes_over_a_document_that_has_none(library: Library) -> None:
    first = await library.accept(text("a.md", ARMSTRONG))
    assert (await library.accept(text("a.md", ARMSTRONG), track="one")).record.track == "one"
    again = await library.accept(text("a.md", ARMSTRONG))
    assert (again.record.track, again.record.id) == ("one", first.record.id)


W1, W2 = "/home/ann/w1/todo.md", "/home/ann/w2/todo.md"


async def test_two_sources_with_one_name_are_two_labelled_documents(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    first = await take(library, indexer, text("todo.md", ARMSTRONG, source=W1))
    second = await take(library, indexer, text("todo.md", SWAN, source=W2))
    assert [(each.outcome, each.record.name) for each in (first, second)] == [("new", "todo.md")] * 2
    records, total = await library.documents()
    assert ([(record.source, record.label) for record in records], total) == (
        [(W2, "w2/todo.md"), (W1, "w1/todo.md")],
        2,
    )
    assert await library.named("todo.md") == records
    assert [(await library.source(record.id) or text("x", "x")).source for record in records] == [W2, W1]
    again = await library.accept(text("todo.md", SWAN, source=W1))
    assert (again.outcome, again.record.id) == ("changed", first.record.id)
    assert (await library.sourced(W2)) == records[0]
    assert await library.delete(second.record.id)
    assert [(record.source, record.label) for record in await library.named("todo.md")] == [(W1, "todo.md")]
    assert await library.sourced(W2) is None
    assert (await library.accept(text("todo.md", SWAN, source=W2))).outcome == "new"


async def test_the_source_defaults_to_the_name(library: Library) -> None:
    record = (await library.accept(text("todo.md", ARMSTRONG))).record
    assert (record.source, record.label) == ("todo.md", "todo.md")
    assert await library.sourced("todo.md") == record
    beside = (await library.accept(text("todo.md", SWAN, source=W1))).record
    assert (beside.id != record.id, beside.label) == (True, "w1/todo.md")
    assert (await library.accept(text("todo.md", LONG))).record.id == record.id


async def test_a_source_under_a_new_name_is_the_same_document(library: Library) -> None:
    first = await library.accept(text("todo.md", ARMSTRONG, source=W1))
    again = await library.accept(text("w1/todo.md", ARMSTRONG, source=W1))
    assert (again.outcome, again.record.id, again.record.name) == ("unchanged", first.record.id, "w1/todo.md")
    assert (again.record.title, (await library.documents())[1]) == ("w1/todo.md", 1)


async def test_below_lists_the_documents_of_a_folder(library: Library) -> None:
    inside = ["/home/ann/w1/a%b.md", "/home/ann/w1/deep/er.md", "/home/ann/w1/todo.md"]
    for source in (*inside, "/home/ann/w1", "/home/ann/w10/todo.md", "/home/ann/w1.md", "/home/bob/w1/x.md", "w1/x.md"):
        await library.accept(text("x.md", ARMSTRONG, source=source))
    for folder in ("/home/ann/w1", "/home/ann/w1/"):
        assert [record.source for record in await library.below(folder)] == inside
    assert len(await library.below("/")) == 7
    assert await library.below("/home/ann/w") == []


async def test_a_document_that_is_moved_keeps_all_but_its_source_and_its_name(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    record = (await take(library, indexer, text("todo.md", ARMSTRONG, source=W1))).record
    record = await library.document(record.id) or record
    passages = await library.passages(record.id)
    moved = await library.move(record.id, source="/home/ann/done.md", name="done.md")
    told = {"source": "/home/ann/done.md", "name": "done.md", "title": "done.md", "label": "done.md"}
    assert moved == replace(record, **told)
    assert await library.sourced("/home/ann/done.md") == moved
    assert (await library.sourced(W1), await library.passages(record.id), await library.restart()) == (
        None,
        passages,
        [],
    )
    (best,) = await (await container.workspaces.open("w")).passages.retrieve("Who built Cragside?", limit=1)
    assert best.metadata["filename"] == "done.md"
    # Another document at the place that it left has an id of its own, and goes without it.
    other = (await take(library, indexer, text("todo.md", SWAN, source=W1))).record
    assert other.id != record.id
    assert await library.move(other.id, source=W1, name="todo.md") == await library.document(other.id)
    with pytest.raises(ValidationError, match="has this source already"):
        await library.move(other.id, source="/home/ann/done.md", name="done.md")
    assert await library.delete(other.id)
    assert await library.passages(record.id) == passages
    with pytest.raises(NotFound):
        await library.move(other.id, source=W1, name="todo.md")


async def test_with_rename_a_text_that_another_name_has_is_taken_all_the_same(library: Library) -> None:
    await library.accept(text("a.md", ARMSTRONG))
    taken = await library.accept(text("conv.txt", ARMSTRONG), rename=True)
    assert (taken.outcome, taken.record.name) == ("new", "conv.txt")


async def test_a_stage_that_goes_on_keeps_the_reason_for_which_the_other_was_given_up(
    library: Library, indexer: PartIndexer
) -> None:
    accepted = await library.accept(text("a.md", ARMSTRONG))
    embedding, enriching = accepted.tasks
    await indexer.failed(embedding, "the host refused it")
    await indexer.begin_enrichment(enriching)
    await indexer.annotate(enriching, [{}], None)
    await indexer.extend_graph(enriching)
    record = await library.document(accepted.record.id)
    assert record is not None
    assert (record.status, record.error, record.enrichment) == ("failed", "the host refused it", "enriched")
    await indexer.embed(embedding)
    record = await library.document(accepted.record.id)
    assert record is not None
    assert (record.status, record.error) == ("enriched", "")

    accepted = await library.accept(text("b.md", "Grease the bearing of the windlass in April."))
    embedding, enriching = accepted.tasks
    await indexer.failed(enriching, "no model writes")
    await indexer.embed(embedding)
    record = await library.document(accepted.record.id)
    assert record is not None
    assert (record.status, record.error, record.searchable) == ("failed", "no model writes", True)
    await indexer.begin_enrichment(enriching)
    await indexer.extend_graph(enriching)
    record = await library.document(accepted.record.id)
    assert record is not None
    assert (record.status, record.error) == ("enriched", "")


async def test_two_workers_with_the_same_tasks_do_them_once(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    acceptance = await library.accept(text("a.md", ARMSTRONG))
    embedding = next(task for task in acceptance.tasks if task.stage == "embed")
    enriching = next(task for task in acceptance.tasks if task.stage == "enrich")
    await asyncio.gather(indexer.embed(embedding), indexer.embed(embedding))
    assert await found(container, "Who built Cragside?") == [ARMSTRONG]
    assert await indexer.begin_enrichment(enriching)
    await asyncio.gather(indexer.extend_graph(enriching), indexer.extend_graph(enriching))
    record = await library.document(acceptance.record.id)
    assert record is not None
    assert record.enrichment == "enriched"
    once = await settled(container, library, indexer)
    assert (once.documents, once.passages) == (1, 1)
    await work(indexer, acceptance.tasks)
    assert await settled(container, library, indexer) == once


async def test_the_same_text_under_the_same_name_is_taken_once(library: Library, indexer: PartIndexer) -> None:
    first = await library.accept(text("a.md", ARMSTRONG))
    again = await library.accept(text("a.md", ARMSTRONG))
    assert (again.outcome, again.tasks) == ("unchanged", first.tasks)
    await work(indexer, first.tasks)
    again = await library.accept(text("a.md", ARMSTRONG))
    assert (again.outcome, list(again.tasks), again.record.status) == ("unchanged", [], "enriched")
    assert (await library.documents())[1] == 1


async def test_the_same_text_under_two_names_is_two_documents_and_counts_once_as_evidence(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    first = await library.accept(text("a.md", ARMSTRONG))
    copy = await library.accept(text("copy.md", ARMSTRONG, metadata={"team": "z"}))
    assert (copy.outcome, copy.record.name, copy.record.metadata) == ("new", "copy.md", {"team": "z"})
    await work(indexer, [*first.tasks, *copy.tasks])
    assert (await library.documents(status="enriched"))[1] == 2
    repository = (await container.workspaces.open("w")).passages
    question = "Who built Cragside in Northumberland?"
    search = SimilaritySearch(question, limit=5, threshold=0.0)
    assert len(await repository.retrieve(question, limit=5)) == 1
    assert len(await repository.similar(search)) == 1
    assert len(await repository.similar(replace(search, strategy="mmr"))) == 1
    of_team = replace(search, filter=Filter((Condition("team", "z"),)))
    assert [each.metadata["filename"] for each in await repository.similar(of_team)] == ["copy.md"]
    assert await library.delete(first.record.id)
    for left in (await repository.retrieve(question, limit=5), await repository.similar(search)):
        assert [document.metadata["filename"] for document in left] == ["copy.md"]
    assert await library.delete(copy.record.id)
    status = await settled(container, library, indexer)
    assert (status.passages, status.entities, status.relations) == (0, 0, 0)


async def test_another_text_of_the_same_name_replaces_it_once_it_can_be_found(
    library: Library, indexer: PartIndexer, container: Container
) -> None:
    first = await library.accept(text("a.md", ARMSTRONG))
    await work(indexer, first.tasks)
    changed = await library.accept(text("a.md", LONG))
    assert (changed.outcome, changed.record.id) == ("changed", first.record.id)
    embedding = [task for task in changed.tasks if task.stage == "embed"]
    for task in embedding[:-1]:
        await indexer.embed(task)
    assert ARMSTRONG in await found(container, "Who lit Cragside with lamps?")
    await indexer.embed(embedding[-1])
    assert ARMSTRONG not in await found(container, "Who lit Cragside with lamps?")
    status = await (await container.workspaces.open("w")).passages.status()
    assert (status.documents, status.passages, status.entities) == (1, changed.record.passages, 0)
    await work(indexer, first.tasks)
    assert (await (await container.workspaces.open("w")).passages.status()).entities == 0


async def test_restoring_a_text_before_its_replacement_is_complete_needs_no_work(
    library: Library, indexer: PartIndexer, container: Container
) -> None:
    first = await library.accept(text("a.md", ARMSTRONG))
    await work(indexer, first.tasks)
    between = await library.accept(text("a.md", LONG))
    await indexer.embed(between.tasks[0])
    back = await library.accept(text("a.md", ARMSTRONG))
    assert (back.outcome, back.record.status) == ("changed", "enriched")
    await work(indexer, [*back.tasks, *between.tasks])
    assert await found(container, "Which bridges did Armstrong build?") == [ARMSTRONG]
    assert (await library.counts()) == {"enriched": 1}


async def test_with_rename_a_taken_name_gets_a_number(library: Library) -> None:
    names = [
        (await library.accept(text("note.md", content), rename=True)).record.name for content in (ARMSTRONG, SWAN, LONG)
    ]
    assert names == ["note.md", "note (2).md", "note (3).md"]
    again = await library.accept(text("note.md", SWAN), rename=True)
    assert (again.outcome, again.record.name) == ("unchanged", "note (2).md")


async def test_without_enrichment_a_searchable_document_is_complete(library: Library, indexer: PartIndexer) -> None:
    acceptance = await library.accept(text("a.md", ARMSTRONG), enrich=False)
    assert [task.stage for task in acceptance.tasks] == ["embed"]
    await work(indexer, acceptance.tasks)
    assert (await library.counts()) == {"none": 1}
    wanted = await library.accept(text("a.md", ARMSTRONG))
    assert [task.stage for task in wanted.tasks] == ["enrich"]


async def settled(container: Container, library: Library, indexer: PartIndexer) -> KnowledgeStatus:
    """The state once nothing is left to a worker, as on a busy machine, or waits for another database."""
    while True:
        await work(indexer, await library.restart(failures=False))
        status = await (await container.workspaces.open("w")).passages.status()
        if not status.waiting_changes:
            return status
        await asyncio.sleep(0.05)


async def test_a_deleted_document_cannot_be_found_and_its_tasks_are_void(
    library: Library, indexer: PartIndexer, container: Container
) -> None:
    kept = await library.accept(text("b.md", SWAN))
    await work(indexer, kept.tasks)
    before = await settled(container, library, indexer)
    gone = await library.accept(text("a.md", ARMSTRONG))
    await work(indexer, gone.tasks)
    version = await (await container.workspaces.open("w")).passages.version()
    assert await library.delete(gone.record.id)
    assert not await library.delete(gone.record.id)
    assert await (await container.workspaces.open("w")).passages.version() != version
    await work(indexer, gone.tasks)
    await indexer.failed(gone.tasks[0], "too late")
    assert await found(container, "Where did Joseph Swan live, and who built Cragside?") == [SWAN]
    assert await settled(container, library, indexer) == before
    assert await library.passages(gone.record.id) == []
    assert (await library.accept(text("a.md", ARMSTRONG))).outcome == "new"


async def test_a_failure_has_a_reason_that_a_restart_clears(library: Library, indexer: PartIndexer) -> None:
    acceptance = await library.accept(text("a.md", ARMSTRONG))
    embedding, enriching = acceptance.tasks
    await indexer.failed(embedding, "no embedder")
    record = await library.document(acceptance.record.id)
    assert record is not None
    assert (record.status, record.error) == ("failed", "no embedder")
    await indexer.embed(embedding)
    await indexer.failed(enriching, "no model")
    record = await library.document(acceptance.record.id)
    assert record is not None
    assert (record.status, record.error, record.searchable) == ("failed", "no model", True)
    assert (await library.documents(status="failed"))[1] == 1
    assert await library.restart() == [enriching]
    assert (await library.documents(status="failed"))[1] == 0
    await work(indexer, [enriching])
    assert await library.restart() == []
    assert await library.restart(force=True) == list(acceptance.tasks)


async def test_documents_are_listed_latest_first_in_pages_by_status_and_by_track(
    library: Library, indexer: PartIndexer
) -> None:
    accepted = [await library.accept(text(f"{i}.md", f"Note {i} says {i}."), track=f"t{i % 2}") for i in range(5)]
    await work(indexer, accepted[1].tasks)
    names, total = await library.documents(limit=2, offset=1)
    assert ([record.name for record in names], total) == (["3.md", "2.md"], 5)
    assert [record.name for record in (await library.documents(track="t1"))[0]] == ["3.md", "1.md"]
    assert [record.name for record in (await library.documents(status="enriched"))[0]] == ["1.md"]
    assert (await library.documents(status="pending"))[1] == 4


async def listed(library: Library, **asked: Any) -> list[str]:
    chosen = {name: asked.pop(name) for name in ("limit", "offset", "status", "track") if name in asked}
    records, _ = await library.documents(listing=Listing(**asked), **chosen)
    return [record.name for record in records]


@pytest_asyncio.fixture(params=[*BACKENDS, THROUGH_POOLER], scope="module", loop_scope="module")
async def varied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    """Four documents, for tests that only read them; b.pdf is enriched, and C.md was changed last.

    Of the files of a.md and C.md something was not read. Those of the others only mention it.
    """
    with made(request) as backend:
        container = opened(tmp_path_factory.mktemp("varied"), backend)
        workspace = await container.workspaces.open("w")
        await fill(workspace.documents, workspace.work)
        yield workspace.documents
        await container.close()


PARTLY_READ = {"half": "\ud83d", "unread": "page 2", "of": math.nan}
MENTIONING = {"title": '"unread": "page 2"', "unread pages": "2", "not": ["unread"]}


async def fill(library: Library, indexer: PartIndexer) -> None:
    await library.accept(SourceText("C.md", "First words.", title="Ünder the 100% bridge", source="/w/sea/C.md"))
    brief = await library.accept(
        text("b.pdf", "A log of the weir.", title="Weir_log", file_type="pdf", tier1=MENTIONING)
    )
    await library.accept(text("a.md", LONG, file_type="md", tier1=PARTLY_READ))
    await library.accept(SourceText("d.txt", "Keel.", source="/w/land/d.txt"))
    await library.accept(
        SourceText("C.md", "Other words.", title="Ünder the 100% bridge", source="/w/sea/C.md", tier1={"unread": '"'})
    )
    await work(indexer, brief.tasks)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("sort", "usual"),
    [
        ("added", ["d.txt", "a.md", "b.pdf", "C.md"]),
        ("changed", ["C.md", "d.txt", "a.md", "b.pdf"]),
        ("name", ["a.md", "b.pdf", "C.md", "d.txt"]),
        ("file_type", ["a.md", "b.pdf", "d.txt", "C.md"]),
        ("passages", ["b.pdf", "d.txt", "C.md", "a.md"]),
        ("status", ["a.md", "d.txt", "C.md", "b.pdf"]),
    ],
)
async def test_documents_are_sorted_in_either_direction_and_in_pages(
    varied: Library, sort: DocumentSort, usual: list[str]
) -> None:
    assert await listed(varied, sort=sort) == usual
    falls = sort in ("added", "changed")
    assert await listed(varied, sort=sort, descending=falls) == usual
    assert await listed(varied, sort=sort, descending=not falls) == usual[::-1]
    assert await listed(varied, sort=sort, limit=2, offset=1) == usual[1:3]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("", ["a.md", "b.pdf", "C.md", "d.txt"]),
        ("C.M", ["C.md"]),
        ("üNDER", ["C.md"]),
        ("weir", ["b.pdf"]),
        ("/SEA/", ["C.md"]),
        ("/w/", ["C.md", "d.txt"]),
        ("a.md", ["a.md"]),
        ("100%", ["C.md"]),
        ("r_l", ["b.pdf"]),
        ("%", ["C.md"]),
        ("_", ["b.pdf"]),
        ("\\", []),
        ("a%d", []),
        ("' OR 1=1 --", []),
        ("weir\x00log", []),
        ("of the weir", []),
    ],
)
async def test_a_search_finds_a_part_of_name_title_or_source_and_no_pattern(
    varied: Library, search: str, names: list[str]
) -> None:
    assert await listed(varied, search=search, sort="name") == names
    assert (await varied.documents(limit=1, listing=Listing(search=search)))[1] == len(names)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_list_is_chosen_by_type_and_status_and_track_together(varied: Library) -> None:
    assert await varied.file_types() == {"md": 1, "pdf": 1, "txt": 2}
    assert await listed(varied, file_type="pdf", status="enriched", search="log") == ["b.pdf"]
    assert await listed(varied, file_type="pdf", status="pending") == []
    assert await listed(varied, file_type="PDF") == []
    assert await listed(varied, file_type="txt", sort="name", track="") == ["C.md", "d.txt"]
    assert await listed(varied, file_type="txt", track="t") == []


@pytest.mark.asyncio(loop_scope="module")
async def test_a_list_of_what_was_read_in_part_has_pages_and_a_total_of_its_own(varied: Library) -> None:
    assert await listed(varied, unread=True) == ["C.md", "a.md"]
    assert await listed(varied, unread=True, sort="name", limit=1, offset=1) == ["C.md"]
    assert (await varied.documents(limit=1, offset=5, listing=Listing(unread=True)))[1] == 2
    assert await listed(varied, unread=True, file_type="md", status="pending", search="A.") == ["a.md"]
    assert await listed(varied, unread=True, status="enriched") == []


async def test_names_and_texts_that_cannot_be_stored_as_they_are_are_accepted(library: Library) -> None:
    record = (await library.accept(text("half \ud83d.md", "A\x00B \udc00 text", title="\x01t"))).record
    assert await library.sourced("half \ud83d.md") == record
    assert (await library.passages(record.id))[0].text == "A B   text"


def cut_into(home: Path, backend: Backend, tokens: int, **settings: str) -> Container:
    changed = {"RAG_CHUNK_TOKENS": str(tokens), "RAG_CHUNK_OVERLAP_TOKENS": "0", **settings}
    return Container(load_settings({"RAG_HOME": str(home), **SMALL_PARTS, **changed}), backend=backend)


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("passages", [2, 3])
async def test_restoring_a_text_after_a_new_passage_size_indexes_all_of_it(
    tmp_path: Path, backend: Backend, complete: bool, passages: int
) -> None:
    before = cut_into(tmp_path, backend, 60)
    library, indexer = (await before.workspaces.open("w")).documents, (await before.workspaces.open("w")).work
    first = await library.accept(text("a.md", LONG))
    await work(indexer, first.tasks if complete else first.tasks[:1])
    await before.close()
    after = cut_into(tmp_path, backend, 100, RAG_PART_PASSAGES=str(passages))
    library, indexer = (await after.workspaces.open("w")).documents, (await after.workspaces.open("w")).work
    await library.accept(text("a.md", ARMSTRONG))
    back = await library.accept(text("a.md", LONG))
    assert (back.outcome, back.record.content_hash) == ("changed", first.record.content_hash)
    await work(indexer, [*first.tasks, *back.tasks])
    record = await library.document(first.record.id)
    assert record is not None
    assert record.status == "enriched"
    held = await library.passages(record.id)
    assert record.passages == len(held)
    assert "".join("".join(passage.text.split()) for passage in held) == "".join(LONG.split())
    repository = (await after.workspaces.open("w")).passages
    for passage in held:
        near = await repository.similar(SimilaritySearch(passage.text, limit=3, threshold=0.99))
        assert passage.id in [document.id for document in near]
    assert (await repository.status()).passages == len(held)
    await library.delete(record.id)
    status = await settled(after, library, indexer)
    assert (status.passages, status.entities, status.relations) == (0, 0, 0)
    await after.close()


async def test_a_part_that_is_no_longer_being_enriched_waits(library: Library, indexer: PartIndexer) -> None:
    acceptance = await library.accept(text("a.md", LONG))
    embeds = [task for task in acceptance.tasks if task.stage == "embed"]
    first, second, *others = (task for task in acceptance.tasks if task.stage == "enrich")
    await work(indexer, [*embeds, first])

    async def states() -> list[str]:
        record = await library.document(acceptance.record.id)
        assert record is not None
        return [part.enrichment for part in record.parts]

    waiting = ["pending"] * len(others)
    for task in (second, others[0]):
        assert await indexer.begin_enrichment(task)
    await indexer.give_back(second)
    assert await states() == ["enriched", "pending", "processing", *waiting[1:]]
    assert (await library.progress()).processing == 1
    assert await indexer.begin_enrichment(second)
    await indexer.give_back()
    assert await states() == ["enriched", "pending", *waiting]
    await indexer.give_back(first)
    assert (await states())[0] == "enriched", "what is done stays done"
    await indexer.give_back(replace(second, document_id="doc-gone"))
    assert await library.restart() == [second, *others]


async def test_an_entity_labels_documents_with_equal_names(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    for source in (W1, W2):
        await take(library, indexer, text("todo.md", ARMSTRONG, source=source))
    view = await (await container.workspaces.open("w")).graph.entity("Joseph Swan")
    assert view is not None
    assert [label for _, label in view.documents] == ["w1/todo.md", "w2/todo.md"]


class Failing:
    """A model that fails."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    async def complete(
        self, prompt: str, *, system: str | None = None, history: Sequence[Mapping[str, str]] = ()
    ) -> str:
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (KeyError("a defect"), ProcessingError),
        (ConnectionResetError("reset"), ServiceUnavailable),
        (ServiceUnavailable("model", "The model is silent."), ServiceUnavailable),
    ],
)
async def test_a_defect_is_not_reported_as_an_outage(
    tmp_path: Path, backend: Backend, failure: Exception, expected: type[Exception]
) -> None:
    container = opened(tmp_path, backend, language_model=Failing(failure))
    workspace = await container.workspaces.open("w")
    with pytest.raises(expected):
        await take(workspace.documents, workspace.work, text("a.md", ARMSTRONG))
    await container.close()


async def told(container: Container) -> dict[str, Any]:
    """All that can be asked of the workspace, without times."""
    workspace = await container.workspaces.open("w")
    records, total = await workspace.documents.documents(limit=100)
    timeless = {"created_at": "", "updated_at": ""}
    entities = await workspace.graph.search("", limit=100)
    views = [view for each in entities if (view := await workspace.graph.entity(each.name))]
    near = await workspace.passages.similar(SimilaritySearch(SWAN, limit=100, threshold=-1.0))
    return {
        "documents": [
            replace(each, **timeless, parts=tuple(replace(part, enriched_at=None) for part in each.parts))
            for each in records
        ],
        "passages": [await workspace.documents.passages(each.id) for each in records],
        "tasks": await workspace.documents.restart(failures=False),
        "sizes": (total, await workspace.documents.counts(), await container.workspaces.stored("w")),
        "status": await workspace.passages.status(),
        "entities": [replace(view, entity=replace(view.entity, first_seen=None, last_seen=None)) for view in views],
        "relations": (await workspace.graph.expand([each.name for each in entities], limit=100)).relationships,
        # Vectors of one direction are equally near but for the last digits.
        "near": sorted((-round(document.score or 0.0, 4), document.content) for document in near),
    }


async def test_extending_the_graph_again_changes_nothing(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    for source in (text("a.md", ARMSTRONG), text("b.md", SWAN)):
        await take(library, indexer, source)
    before = await told(container)
    assert before["entities"]
    assert before["relations"]
    await work(indexer, await library.restart(force=True))
    assert await told(container) == before


async def test_a_rebuilt_store_gives_the_same_answers(
    container: Container, library: Library, indexer: PartIndexer
) -> None:
    for source in (text("a.md", LONG), text("b.md", SWAN, metadata={"team": "x"})):
        await take(library, indexer, source)
    waiting = await library.accept(text("c.md", ARMSTRONG))
    await indexer.embed(waiting.tasks[0])
    before = await told(container)
    assert await container.workspaces.reindex("w", lambda _: None) == 3
    after = await told(container)
    assert after == before
    assert await container.workspaces.names() == ["w"]


class Noting(EmbeddedLanguageModel):
    """Notes what it is asked to extract."""

    def __init__(self) -> None:
        self.extractions = 0

    async def complete(self, prompt: str, **more: Any) -> str:
        self.extractions += "Extract entities" in prompt
        return await super().complete(prompt, **more)


async def test_a_rebuilt_store_asks_no_model_again_about_a_passage(tmp_path: Path, backend: Backend) -> None:
    model = Noting()
    container = opened(tmp_path, backend, language_model=model)
    workspace = await container.workspaces.open("w")
    for source in (text("a.md", LONG), text("b.md", SWAN)):
        await take(workspace.documents, workspace.work, source)
    before, extractions = await told(container), model.extractions
    assert extractions > 0
    assert await container.workspaces.reindex("w", lambda _: None) == 2
    assert await told(container) == before
    assert model.extractions == extractions
    await container.close()


SEVERN = LONG.replace("Coquet", "Severn").replace("William Armstrong", "Thomas Telford")


@pytest.mark.parametrize("backend", SERVERS, indirect=True)
async def test_servers_give_the_answers_of_sqlite(tmp_path: Path, backend: Backend) -> None:
    kept = []
    for number, each in enumerate((backend, SqliteBackend())):
        container = opened(tmp_path / str(number), each)
        workspace = await container.workspaces.open("w")
        for source in (text("a.md", LONG), text("b.md", SWAN), text("a.md", ARMSTRONG), text("c.md", SEVERN)):
            await take(workspace.documents, workspace.work, source)
        assert await workspace.documents.delete((await workspace.documents.named("b.md"))[0].id)
        kept.append(await told(container))
        await container.close()
    assert kept[0] == kept[1]
