"""A writer that stops between PostgreSQL and Neo4j loses nothing, and changes nothing once others have gone on."""

import asyncio
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from cragside.adapters.lightrag.storages.neo4j.fence import FencedGraph
from cragside.bootstrap import Container, preload
from cragside.domain.indexing import Task
from tests.integration.test_writers_side_by_side import LATER, SHORT, TEXTS, accept, assert_equal, build, do, run
from tests.places import FORK, InNeo4j, forked
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres


@pytest.fixture
def both(postgres: "Postgres", neo4j: "Neo4j", tmp_path: Path) -> Iterator[tuple[InNeo4j, InNeo4j]]:
    with migrated(postgres) as one, migrated(postgres) as other:
        disturbed, undisturbed = InNeo4j(tmp_path / "d", one, neo4j.uri), InNeo4j(tmp_path / "u", other, neo4j.uri)
        preload(disturbed.settings())
        yield disturbed, undisturbed


def stops(place: InNeo4j, when: str, told: Connection, task: Task) -> None:
    """A worker that merges a part, and stops its process before it writes to Neo4j or right after."""
    write = FencedGraph.write

    async def stopping(self: FencedGraph, key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        if when == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        written = await write(self, key, seq, change_id, change)
        if when == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return written

    FencedGraph.write = stopping  # type: ignore[method-assign]  # of this process alone

    async def work(container: Container) -> None:
        await container.queue.send([task])
        (delivery,) = await container.queue.receive(limit=1, wait=0)
        told.send((await container.attempts.handle(delivery)).outcome)

    run(place, work, SHORT)


@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
@pytest.mark.parametrize("when", ["before", "after"])
def test_others_finish_the_change_of_a_stopped_writer(
    both: tuple[InNeo4j, InNeo4j], when: str, then: signal.Signals
) -> None:
    disturbed, undisturbed = both
    build(undisturbed, [TEXTS[0], TEXTS[4], LATER])
    build(disturbed, TEXTS[:1])

    async def stopped_and_overtaken(container: Container) -> None:
        *embeds, merging = await accept(container, TEXTS[4:5])
        await do(container, embeds)
        ours, theirs = FORK.Pipe()
        writer = forked(stops, disturbed, when, theirs, merging)
        _, how = await asyncio.to_thread(os.waitpid, writer.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(how)
        assert await asyncio.to_thread(disturbed.waiting) == 1
        await do(container, await accept(container, [LATER]))
        assert await asyncio.to_thread(disturbed.waiting) == 0
        os.kill(writer.pid, then)
        if then is signal.SIGCONT:
            assert ours.poll(30)
            assert ours.recv() == "done"
        writer.join(30)
        assert writer.exitcode == (0 if then is signal.SIGCONT else -signal.SIGKILL)

    run(disturbed, stopped_and_overtaken, SHORT)
    assert_equal(disturbed, undisturbed)
