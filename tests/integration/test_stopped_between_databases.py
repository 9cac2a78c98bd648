"""A writer that stops between PostgreSQL and another database loses nothing, and undoes nothing of what others did."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from anyio.from_thread import start_blocking_portal

from cragside.bootstrap import Container, preload
from cragside.domain.indexing import Task
from cragside.store.outside.neo4j import Neo4jGraphs
from cragside.store.outside.qdrant import QdrantVectors
from cragside.store.outside.redis import RedisValues
from cragside.store.postgres.journal import Target
from cragside.store.postgres.lightrag_rows import ANSWERS
from tests.integration.test_writers_side_by_side import LATER, SHORT, TEXTS, accept, assert_equal, build, do, run
from tests.places import FORK, InNeo4j, InPostgres, InQdrant, InRedis, forked
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.postgres import Postgres


# The places, with what writes to the other database.
WRITERS: dict[type[InPostgres], type[Target[Any]]] = {
    InNeo4j: Neo4jGraphs,
    InQdrant: QdrantVectors,
    InRedis: RedisValues,
}


@pytest.fixture(
    params=[
        pytest.param(InNeo4j, marks=pytest.mark.services("postgres", "neo4j")),
        pytest.param(InQdrant, marks=pytest.mark.services("postgres", "qdrant")),
        pytest.param(InRedis, marks=pytest.mark.services("postgres", "redis")),
    ]
)
def both(
    request: pytest.FixtureRequest, postgres: "Postgres", tmp_path: Path
) -> Iterator[tuple[InPostgres, InPostgres]]:
    kind = request.param
    with ExitStack() as stack:
        if kind is InRedis:
            portal = stack.enter_context(start_blocking_portal())
            databases = request.getfixturevalue("redis").database()
            address = stack.enter_context(portal.wrap_async_context_manager(databases))
        else:
            address = request.getfixturevalue("qdrant") if kind is InQdrant else request.getfixturevalue("neo4j").uri
        disturbed, undisturbed = (
            kind(tmp_path / name, stack.enter_context(migrated(postgres)), address) for name in ("d", "u")
        )
        preload(disturbed.settings())
        yield disturbed, undisturbed


def stops(place: InPostgres, when: str, told: Connection, task: Task) -> None:
    """A worker that merges a part, and stops its process before it writes to the other database or right after."""
    writer = WRITERS[type(place)]
    write = writer.write

    async def stopping(self: Target[Any], key: str, seq: int, change_id: UUID, change: dict[str, Any]) -> bool:
        merges = change.keys() != {ANSWERS}
        if merges and when == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        written = await write(self, key, seq, change_id, change)
        if merges and when == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return written

    writer.write = stopping  # type: ignore[method-assign]  # of this process alone

    async def work(container: Container) -> None:
        await container.queue.send([task])
        (delivery,) = await container.queue.receive(limit=1, wait=0)
        told.send((await container.attempts.handle(delivery)).outcome)

    run(place, work, SHORT)


@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
@pytest.mark.parametrize("when", ["before", "after"])
def test_others_finish_the_change_of_a_stopped_writer(
    both: tuple[InPostgres, InPostgres], when: str, then: signal.Signals
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
        assert await asyncio.to_thread(disturbed.waiting) >= 1
        await do(container, await accept(container, [LATER]))
        assert await asyncio.to_thread(disturbed.waiting) == 0
        os.kill(writer.pid, then)
        if then is signal.SIGCONT:
            assert ours.poll(120)
            assert ours.recv() == "done"
        writer.join(30)
        assert writer.exitcode == (0 if then is signal.SIGCONT else -signal.SIGKILL)

    run(disturbed, stopped_and_overtaken, SHORT)
    assert_equal(disturbed, undisturbed)
