"""A worker that is killed at a hundred random moments loses nothing and doubles nothing."""

import asyncio
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cragside.adapters.embedded.languages import iso_639_1
from cragside.bootstrap import Container, preload
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.query import SimilaritySearch
from tests.places import FORK, Place, forked, places

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    pass

SEED = int(os.environ.get("KILL_SEED", "20261122"))
_TRIES = 20
WORKSPACES = ("garden", "harbour", "library")

Change = tuple[str, str, str]
"""A workspace, a document's name, and its text; "" deletes it."""


def text(chance: random.Random) -> str:
    """Some paragraphs that name people and places."""

    def name() -> str:
        return (
            f"{chance.choice('BDFGKLMNPRST')}{chance.choice('aeiou')}{chance.choice(('rlin', 'ndor', 'lvek', 'stro'))}"
        )

    paragraphs = []
    for _ in range(chance.randint(2, 6)):
        who, where, other = f"{name()} {name()}", f"{name()} Bridge", f"{name()} {name()}"
        paragraphs.append(
            f"{who} built the {where} together with {other} in {chance.randint(1700, 1999)}. "
            f"The {where} was paid for by {other}, whose letters call it a folly number {chance.randint(0, 10**6)}. "
            f"{who} never went back."
        )
    return "\n\n".join(paragraphs)


class Script:
    """Bring, change and delete documents by chance; `texts` has the documents that should be left."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._count = 0
        self.texts: dict[tuple[str, str], str] = {}

    def next(self) -> Change:
        kind = self._chance.random()
        if kind < 0.5 or len(self.texts) < 3:
            self._count += 1
            change = WORKSPACES[self._count % 3], f"text-{self._count}.md", text(self._chance)
        else:
            workspace, name = self._chance.choice(sorted(self.texts))
            change = workspace, name, "" if kind > 0.8 else text(self._chance)
        self.texts[change[:2]] = change[2]
        if not change[2]:
            del self.texts[change[:2]]
        return change


def with_container(place: Place, work: Callable[[Container], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        container = Container(place.settings())
        try:
            await work(container)
        finally:
            await container.close()

    asyncio.run(run())


async def carry_out(container: Container, change: Change) -> None:
    """Take a document in, or delete it, as the routes do. What an earlier try has done is no error."""
    workspace, name, wanted = change
    library = (await container.workspaces.open(workspace)).documents
    if wanted:
        acceptance = await library.accept(SourceText(name, wanted))
        await container.queue.send(acceptance.tasks)
    elif (record := await library.sourced(name)) is not None:
        await container.queue.discard(workspace=workspace, document_id=record.id)
        assert await library.delete(record.id)


def brings(place: Place, orders: Connection) -> None:
    """The server's part: takes documents in, as its routes do, while the workers live and die.

    A client that is told that a database is busy tries again. Anything else is told to the test.
    """

    async def serve(container: Container) -> None:
        while (change := await asyncio.to_thread(orders.recv)) is not None:
            for left in reversed(range(_TRIES)):
                try:
                    await carry_out(container, change)
                    orders.send("taken")
                except ServiceUnavailable:
                    if left:
                        await asyncio.sleep(0.5)
                        continue
                    orders.send(traceback.format_exc())
                except Exception:
                    orders.send(traceback.format_exc())
                break

    with_container(place, serve)


def works(place: Place, until_idle: bool, told: Connection | None = None) -> None:
    async def work(container: Container) -> None:
        await container.worker().run(until_idle=until_idle, progress=told and (lambda _: told.send(1)))

    with_container(place, work)


async def check_what_is_found(place: Place, texts: dict[tuple[str, str], str]) -> None:
    container = Container(place.settings())
    try:
        for (workspace, name), held in texts.items():
            library = (await container.workspaces.open(workspace)).documents
            record = await library.sourced(name)
            assert record is not None
            assert (record.status, record.enrichment, record.error) == ("enriched", "enriched", "")
            passages = await library.passages(record.id)
            assert len(passages) == record.passages > 0
            assert all(passage.tier2 is not None and passage.enrichment == "enriched" for passage in passages)
            assert sum(len(passage.text) for passage in passages) >= len(held) * 0.9
            repository = (await container.workspaces.open(workspace)).passages
            for passage in passages:
                found = await repository.similar(SimilaritySearch(passage.text, limit=3, threshold=0.99))
                assert passage.id in [document.id for document in found]
        for workspace in WORKSPACES:
            assert set(await (await container.workspaces.open(workspace)).documents.counts()) <= {"enriched"}
    finally:
        await container.close()


@pytest.mark.parametrize(
    ("kind", "workers", "kills"),
    [
        ("files", 1, 100),
        pytest.param("postgres", 2, 50, marks=pytest.mark.services("postgres")),
        pytest.param("postgres_age", 2, 15, marks=pytest.mark.services("postgres_age")),
        pytest.param("postgres_neo4j", 2, 15, marks=pytest.mark.services("postgres", "neo4j")),
    ],
)
@pytest.mark.waits("kill")
def test_killed_workers_lose_nothing_and_double_nothing(
    kind: str,
    workers: int,
    kills: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with places(kind, tmp_path, request) as place:
        told = kill_at_random(place("disturbed"), place("undisturbed"), workers=workers, kills=kills)
    with capsys.disabled():
        print(f"\n{told}")


def kill_at_random(disturbed: Place, undisturbed: Place, *, workers: int, kills: int) -> str:
    """Kill one of the workers at random moments while documents come, change and go; compare with a calm store."""
    preload(disturbed.settings())
    # Workers are forked with the model that tells languages, rather than read it a hundred times.
    assert iso_639_1("The lighthouse keeper lit the lamp at dusk.") == "en"
    chance, script = random.Random(SEED), Script(SEED)
    orders, theirs = FORK.Pipe()
    server = forked(brings, disturbed, theirs)

    def bring() -> None:
        orders.send(script.next())
        assert orders.poll(180), "The order was not carried out."
        assert orders.recv() == "taken"

    def started() -> tuple[Connection, Any]:
        ours, told = FORK.Pipe()
        return ours, forked(works, disturbed, False, told)

    began, busy = time.monotonic(), 0
    for _ in range(4):
        bring()
    running = [started() for _ in range(workers)]
    for _ in range(kills):
        ours, worker = running.pop(chance.randrange(workers))
        # So many tasks later, whatever the machine's speed, and then anywhere in what comes next.
        left, patience = chance.randint(-1, 4), time.monotonic() + 10
        while left > 0 and time.monotonic() < patience:
            if sum(disturbed.statistics()) < 30 and chance.random() < 0.8:
                bring()
            while left > 0 and ours.poll(0.02):
                left -= ours.recv()
        time.sleep(chance.uniform(0.0, 0.3 if left < 0 else 0.1))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        assert worker.exitcode == -signal.SIGKILL, "the worker ended before it was killed"
        busy += disturbed.statistics()[1] > 0
        running.append(started())
    for _, worker in running:
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    orders.send(None)
    server.join(30)
    assert server.exitcode == 0
    finish(disturbed)
    seconds = time.monotonic() - began
    reference, theirs = FORK.Pipe()
    server = forked(brings, undisturbed, theirs)
    for (workspace, name), held in script.texts.items():
        reference.send((workspace, name, held))
        assert reference.recv() == "taken"
    reference.send(None)
    server.join(30)
    finish(undisturbed)

    assert busy >= kills / 2, "too few kills hit anything"
    assert disturbed.statistics() == (0, 0, 0)
    for workspace in WORKSPACES:
        there, wanted = disturbed.contents(workspace), undisturbed.contents(workspace)
        for kind in wanted:
            assert there[kind] == wanted[kind], f"{workspace}: {kind}"
    asyncio.run(check_what_is_found(disturbed, script.texts))
    return (
        f"seed {SEED}: {kills} kills in {seconds:.0f} s, {busy} of them with tasks in hand; "
        f"{script._count} documents brought, {len(script.texts)} there in the end"
    )


def finish(place: Place) -> None:
    """Have a last worker do what is left."""
    last = forked(works, place, True)
    last.join(300)
    assert last.exitcode == 0
