"""The order in which queues of our own hand tasks out, and what becomes of the tasks of dead workers."""

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.indexing import Delivery, Stage, Task
from cragside.store.queues.sql import TaskQueue
from tests.queues import Queues, file_queues, postgres_queues

FORK = multiprocessing.get_context("fork")
DEATHS_TOLERATED = 3
Make = Callable[[], TaskQueue]


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed", workspace: str = "library") -> Task:
    return Task(workspace, document, f"{document}-sha", part, stage)


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.services("postgres"))])
def queues(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queues]:
    if request.param == "file":
        yield file_queues(tmp_path)
        return
    with postgres_queues(request.getfixturevalue("postgres")) as made:
        yield made


@pytest.fixture
def make(queues: Queues) -> Make:
    return queues.make


@pytest.fixture
async def queue(make: Make) -> AsyncIterator[TaskQueue]:
    made = make()
    yield made
    await made.close()


async def tasks_of(queue: TaskQueue, limit: int = 10) -> list[Task]:
    return [delivery.task for delivery in await queue.receive(limit=limit, wait=0)]


def dies_with_tasks_in_hand(make: Make, limit: int = 10) -> None:
    """A worker that is killed after it has received."""

    def work(told: Any) -> None:
        told.send(len(asyncio.run(make().receive(limit=limit, wait=10))))
        signal.pause()

    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    assert ours.recv() > 0
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()


async def test_tasks_of_a_killed_worker_return_at_once_without_counting_an_attempt(
    queue: TaskQueue, make: Make
) -> None:
    await queue.send([task(), task("doc-2")])
    await asyncio.to_thread(dies_with_tasks_in_hand, make)
    assert (await queue.stats()).processing == 2
    first, second = await queue.receive(limit=10, wait=0)
    assert (first.task, first.attempt, second.task, second.attempt) == (task(), 1, task("doc-2"), 1)


async def test_a_task_that_killed_several_workers_runs_alone_and_counts_attempts(queue: TaskQueue, make: Make) -> None:
    await queue.send([task("doc-bad"), task("doc-2")])
    for _ in range(DEATHS_TOLERATED):
        await asyncio.to_thread(dies_with_tasks_in_hand, make)
    (alone,) = await queue.receive(limit=10, wait=0)
    assert (alone.task, alone.attempt) == (task("doc-bad"), 1)
    assert await tasks_of(queue) == []
    await queue.finish(alone)
    (other,) = await queue.receive(limit=10, wait=0)
    assert other.task == task("doc-2")


async def test_a_death_while_running_alone_counts_as_an_attempt(queue: TaskQueue, queues: Queues) -> None:
    await queue.send([task("doc-bad")])
    for _ in range(DEATHS_TOLERATED + 1):
        await asyncio.to_thread(dies_with_tasks_in_hand, queues.make)
    await queue.send([task("doc-2")])
    (other,) = await queue.receive(limit=10, wait=0)
    assert other.task == task("doc-2")
    await queue.finish(other)
    assert await tasks_of(queue) == []
    await queues.pass_by(2)
    (again,) = await queue.receive(limit=10, wait=0)
    assert (again.task, again.attempt) == (task("doc-bad"), 2)


async def test_a_task_that_killed_workers_waits_until_nothing_else_is_in_hand(queue: TaskQueue, queues: Queues) -> None:
    await queue.send([task("doc-bad")])
    for _ in range(DEATHS_TOLERATED + 1):
        await asyncio.to_thread(dies_with_tasks_in_hand, queues.make)
    await queue.send([task("doc-2")])
    (other,) = await queue.receive(limit=10, wait=0)
    await queues.pass_by(1.5)
    assert await tasks_of(queue) == []
    await queue.finish(other)
    assert await tasks_of(queue) == [task("doc-bad")]
    await queue.send([task("doc-3")])
    assert await tasks_of(queue) == []


async def test_a_worker_that_begins_again_gets_the_tasks_of_one_that_was_killed_meanwhile(
    queue: TaskQueue, make: Make
) -> None:
    await queue.send([task()])
    assert await tasks_of(queue) == [task()]
    await queue.close()
    await asyncio.to_thread(dies_with_tasks_in_hand, make)
    assert await tasks_of(queue) == [task()]


async def test_workers_that_are_stopped_in_good_order_put_no_blame_on_their_tasks(make: Make) -> None:
    first = make()
    await first.send([task(), task("doc-2")])
    await first.close()
    for _ in range(DEATHS_TOLERATED + 2):
        worker = make()
        assert [delivery.attempt for delivery in await worker.receive(limit=10, wait=0)] == [1, 1]
        await worker.close()


async def test_a_task_waiting_for_its_retry_does_not_block_its_group(queue: TaskQueue) -> None:
    await queue.send([task(part=0), task(part=1)])
    first, second = await queue.receive(limit=2, wait=0)
    await queue.retry(first, delay=60)
    await queue.finish(second)
    await queue.send([task(part=2)])
    assert await tasks_of(queue) == [task(part=2)]


async def test_workspaces_take_turns(queue: TaskQueue) -> None:
    for workspace in ("a", "b", "c"):
        await queue.send([task(f"doc-{n}", workspace=workspace) for n in range(20)])
    assert [each.workspace for each in await tasks_of(queue, limit=6)] == ["a", "b", "c", "a", "b", "c"]


class Places:
    """A worker's places: all are taken, and as soon as the longest taken one is free another task gets it."""

    def __init__(self, queue: TaskQueue, parallel: int) -> None:
        self._queue = queue
        self._parallel = parallel
        self._taken: list[Delivery] = []

    async def turns(self, count: int) -> list[str]:
        """The workspaces whose tasks are handed out next."""
        order = list[str]()
        while len(order) < count:
            if self._taken:
                await self._queue.finish(self._taken.pop(0))
            deliveries = await self._queue.receive(limit=self._parallel - len(self._taken), wait=0)
            order += [delivery.task.workspace for delivery in deliveries]
            self._taken += deliveries
        return order


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("parallel", [1, 2, 32])
@pytest.mark.parametrize("flooding", ["a", "z"])
@pytest.mark.parametrize("stages", [("embed", "embed"), ("enrich", "enrich"), ("embed", "enrich"), ("enrich", "embed")])
async def test_a_document_is_next_however_many_another_workspace_has(
    queue: TaskQueue, parallel: int, flooding: str, stages: tuple[Stage, Stage]
) -> None:
    """The flood was there first, and fills all places of the worker that it may have."""
    many, one = stages
    places = Places(queue, parallel)
    await queue.send([task(f"doc-{n}", stage=many, workspace=flooding) for n in range(200)])
    await places.turns(2 * parallel)
    await queue.send([task(stage=one, workspace="m")])
    assert "m" in await places.turns(3)


@pytest.mark.attack("exhausted resources")
async def test_many_workspaces_share_the_turns_alike(queue: TaskQueue) -> None:
    for number in range(40):
        await queue.send([task(f"doc-{n}", workspace=f"w{number}") for n in range(10)])
    assert set(Counter(await Places(queue, 8).turns(80)).values()) == {2}


async def test_embedding_precedes_older_enrichment(queue: TaskQueue) -> None:
    await queue.send([task("doc-1", stage="enrich"), task("doc-2")])
    assert await tasks_of(queue, limit=1) == [task("doc-2")]


async def test_a_document_is_not_enriched_before_all_of_it_is_embedded(queue: TaskQueue) -> None:
    await queue.send([task(stage="enrich"), task(part=0), task(part=1)])
    first, second = await queue.receive(limit=10, wait=0)
    assert {first.task.stage, second.task.stage} == {"embed"}
    await queue.finish(first)
    await queue.retry(second, delay=60)
    assert await tasks_of(queue) == []


async def test_enrichment_leaves_capacity_for_new_text(queue: TaskQueue) -> None:
    await queue.send([task(f"doc-{n}", stage="enrich", workspace=f"w-{n}") for n in range(50)])
    free = 16
    while deliveries := await queue.receive(limit=free, wait=0):
        free -= len(deliveries)
    assert free == 1


async def test_the_next_free_place_is_for_the_workspace_with_the_fewest_documents_being_enriched(
    queue: TaskQueue,
) -> None:
    await queue.send([task(f"doc-{number}", stage="enrich") for number in range(100)])
    held: list[Delivery] = []
    for _ in range(5):
        held += await queue.receive(limit=8 - len(held), wait=0)
    assert len(held) == 7
    await queue.send([task(stage="enrich", workspace="small")])
    await queue.finish(held.pop())
    assert [each.workspace for each in await tasks_of(queue, limit=8 - len(held))] == ["small"]


async def test_a_worker_with_one_slot_enriches_too(queue: TaskQueue) -> None:
    await queue.send([task(stage="enrich")])
    assert await tasks_of(queue, limit=1) == [task(stage="enrich")]


async def test_a_worker_that_wakes_late_buries_nothing(make: Make) -> None:
    late, other = make(), make()
    await late.send([task(stage="enrich")])
    (delivery,) = await late.receive(limit=1, wait=0)
    await late.close()
    (taken,) = await other.receive(limit=1, wait=0)
    await other.bury(taken, "the model is gone")
    await late.bury(delivery, "too late")
    assert [letter.reason for letter in await other.dead()] == ["the model is gone"]
    await other.close()
    await late.close()
