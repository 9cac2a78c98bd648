"""Processes that write to one workspace: stopped, killed, and side by side."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.language_model import EmbeddedLanguageModel
from cragside.application.attempts import Handled, Indexer
from cragside.bootstrap import Container, preload
from cragside.databases.lease_holders import new_holder
from cragside.domain.document import SourceText
from cragside.domain.indexing import Task
from cragside.ports.embedder import Vectors
from cragside.store.driver import Always, GraphChange
from cragside.store.open_store import part_lease
from tests.embedded_workspaces import store_of
from tests.places import FORK, KINDS, InFiles, Place, forked, places

SHORT, LONG = 0.4, 100.0
BUILDERS = ("William Armstrong", "Joseph Swan", "Norman Shaw", "John Dobson")
# Each builder is in two texts: of more, a model would sum up what is told of them, in the order in which it came.
TEXTS = [
    f"{BUILDERS[number % 4]} built the Bridge {number} of Newcastle{number % 4}. {BUILDERS[number % 4]} lit the Bridge "
    f"{number} with lamps in {1860 + number}."
    for number in range(8)
]
LATER = f"{BUILDERS[0]} built the Tower of Newcastle0 in 1890."


class StopsItself(WordLlamaEmbedder):
    """Stops its process once, as SIGSTOP from outside would, when it embeds what is merged into the graph."""

    stopped = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not self.stopped:
            self.stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
        return await super().embed(texts)


@pytest.fixture(scope="module", autouse=True)
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    preload(InFiles(tmp_path_factory.mktemp("preload")).settings())


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    """Makes new places by their names."""
    with places(request.param, tmp_path, request) as make:
        yield make


def assert_equal(one: Place, other: Place) -> None:
    there, wanted = one.contents("library"), other.contents("library")
    for kind in wanted:
        assert there[kind] == wanted[kind], kind


def run(place: Place, work: Callable[[Container], Coroutine[Any, Any, None]], seconds: float, **members: Any) -> None:
    async def with_container() -> None:
        container = Container(place.settings(), lease_seconds=seconds, **members)
        try:
            await work(container)
        finally:
            await container.close()

    asyncio.run(with_container())


async def accept(container: Container, texts: Sequence[str]) -> list[Task]:
    library = (await container.workspaces.open("library")).documents
    tasks: list[Task] = []
    for text in texts:
        tasks += (await library.accept(SourceText(f"{text[:40]}.md", text))).tasks
    return tasks


async def do(container: Container, tasks: Sequence[Task]) -> None:
    indexer = Indexer(container.workspaces, container.annotator)
    await asyncio.gather(*(indexer.do(task) for task in tasks))


def build(place: Place, texts: Sequence[str]) -> None:
    async def work(container: Container) -> None:
        await do(container, await accept(container, texts))

    run(place, work, LONG)


def merges(place: Place, told: Connection, task: Task) -> None:
    """A worker that gets one task, and is stopped in the middle of it."""

    async def work(container: Container) -> None:
        await container.queue.send([task])
        (delivery,) = await container.queue.receive(limit=1, wait=0)
        handled = await container.attempts.handle(delivery)
        told.send((handled.outcome, handled.reason))

    run(place, work, SHORT, embedder=StopsItself())


def test_a_writer_that_was_stopped_past_its_lease_is_refused(place: Callable[[str], Place]) -> None:
    disturbed, undisturbed = place("disturbed"), place("undisturbed")
    build(undisturbed, [TEXTS[0], TEXTS[4], LATER])
    build(disturbed, TEXTS[:1])

    async def stopped_and_overtaken(container: Container) -> None:
        *embeds, merging = await accept(container, TEXTS[4:5])
        assert {task.stage for task in embeds} == {"embed"}
        await do(container, embeds)
        ours, theirs = FORK.Pipe()
        writer = forked(merges, disturbed, theirs, merging)
        _, how = await asyncio.to_thread(os.waitpid, writer.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(how)
        await do(container, [merging])
        await do(container, await accept(container, [LATER]))
        os.kill(writer.pid, signal.SIGCONT)
        assert ours.poll(120)
        outcome, reason = ours.recv()
        assert outcome == "retried"
        assert "Another process has taken over" in reason
        writer.join(30)

    run(disturbed, stopped_and_overtaken, SHORT)
    assert_equal(disturbed, undisturbed)


def holds(place: Place, told: Connection, task: Task) -> None:
    """A worker that enriches a part and merges into the graph for as long as it lives."""

    async def work(container: Container) -> None:
        assert await (await container.workspaces.open("library")).work.begin_enrichment(task)
        async with (await store_of(container.workspaces, "library")).writing():
            told.send("begun")
            await asyncio.sleep(LONG)

    run(place, work, LONG)


def test_only_the_parts_of_a_killed_worker_are_taken_over(place: Callable[[str], Place]) -> None:
    store = place("store")

    async def work(container: Container) -> None:
        *_, enriching = await accept(container, TEXTS[:1])
        workspace = await container.workspaces.open("library")
        ours, theirs = FORK.Pipe()
        other = forked(holds, store, theirs, enriching)
        assert await asyncio.to_thread(ours.poll, 30)
        assert ours.recv() == "begun"
        await workspace.work.give_back()
        assert set(await workspace.documents.counts()) == {"processing"}
        async with (await store_of(container.workspaces, "library")).writing_if_free() as free:
            assert free is None
        other.kill()
        other.join(30)
        await workspace.work.give_back()
        assert set(await workspace.documents.counts()) == {"pending"}
        async with asyncio.timeout(30):
            await do(container, [enriching])
        assert set(await workspace.documents.counts()) == {"enriched"}

    run(store, work, LONG)


def test_two_processes_index_one_workspace(place: Callable[[str], Place]) -> None:
    together, apart = place("together"), place("apart")
    build(apart, TEXTS)
    builders = [forked(build, together, TEXTS[:4]), forked(build, together, TEXTS[4:])]
    for builder in builders:
        builder.join(60)
        assert builder.exitcode == 0
    assert_equal(together, apart)


@pytest.mark.waits("lease")
async def test_a_holder_that_works_for_longer_than_its_lease_keeps_it(place: Callable[[str], Place]) -> None:
    settings = place("store").settings()
    one, other = (Container(settings, lease_seconds=0.15) for _ in range(2))
    await accept(one, TEXTS[:1])
    store = await store_of(one.workspaces, "library")
    async with store.writing() as ledger:
        await asyncio.sleep(0.5)
        async with (await store_of(other.workspaces, "library")).writing_if_free() as free:
            assert free is None
        await ledger.apply(GraphChange(), Always(), store.embedding_model)
    async with (await store_of(other.workspaces, "library")).writing_if_free() as free:
        assert free is not None
    await one.close()
    await other.close()


async def test_a_document_that_is_deleted_while_it_is_enriched_leaves_no_lease(place: Callable[[str], Place]) -> None:
    settings = place("store").settings()
    container = Container(settings)
    *_, enriching = await accept(container, TEXTS[:1])
    workspace = await container.workspaces.open("library")
    assert await workspace.work.begin_enrichment(enriching)
    ledger = (await store_of(container.workspaces, "library")).ledger
    assert await ledger.driver.take_lease(part_lease(enriching), new_holder(), 1) is None
    assert await workspace.documents.delete(enriching.document_id)
    await workspace.work.extend_graph(enriching)
    assert await ledger.driver.take_lease(part_lease(enriching), new_holder(), 1) is not None
    await container.close()


class Hesitates(EmbeddedLanguageModel):
    """Takes its time with one of the texts."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def complete(self, prompt: str, **others: Any) -> str:
        if "Bridge 0" in prompt:
            self.asked.set()
            await self.go.wait()
        return await super().complete(prompt, **others)


async def test_documents_of_a_workspace_are_extracted_at_the_same_time(place: Callable[[str], Place]) -> None:
    settings = place("store").settings()
    model = Hesitates()
    container = Container(settings, language_model=model)
    enriched = asyncio.Queue[str]()
    worker = container.worker()

    def told(handled: Handled) -> None:
        if handled.task.stage == "enrich":
            enriched.put_nowait(handled.task.document_id)

    await container.queue.send(await accept(container, TEXTS[:1]))
    running = asyncio.create_task(worker.run(progress=told, sweep=False))
    async with asyncio.timeout(30):
        await model.asked.wait()
        later = await accept(container, TEXTS[1:3])
        await container.queue.send(later)
        assert {await enriched.get() for _ in range(2)} == {task.document_id for task in later}
        model.go.set()
        assert await enriched.get() not in {task.document_id for task in later}
    worker.stop()
    await running
    await container.close()
