import asyncio
import multiprocessing
import os
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.local.queue import FILE_NAME, LocalQueue
from cragside.adapters.local.queue_turns import DEATHS_TOLERATED
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Stage, Task
from cragside.ports.index_queue import Delivery, QueueStats

FORK = multiprocessing.get_context("fork")


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed", workspace: str = "library") -> Task:
    return Task(workspace, document, f"{document}-sha", part, stage)


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[LocalQueue]:
    made = LocalQueue(tmp_path)
    yield made
    await made.close()


async def tasks_of(queue: LocalQueue, limit: int = 10) -> list[Task]:
    return [delivery.task for delivery in await queue.receive(limit=limit, wait=0)]


def dies_with_tasks_in_hand(home: Path, limit: int = 10) -> None:
    """A worker that is killed after it has received."""

    def work(told: Any) -> None:
        told.send(len(asyncio.run(LocalQueue(home).receive(limit=limit, wait=10))))
        signal.pause()

    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    assert ours.recv() > 0
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()


async def test_tasks_of_a_killed_worker_return_at_once_without_counting_an_attempt(
    queue: LocalQueue, tmp_path: Path
) -> None:
    await queue.send([task(), task("doc-2")])
    await asyncio.to_thread(dies_with_tasks_in_hand, tmp_path)
    assert (await queue.stats()).processing == 2
    first, second = await queue.receive(limit=10, wait=0)
    assert (first.task, first.attempt, second.task, second.attempt) == (task(), 1, task("doc-2"), 1)


async def test_a_task_that_killed_several_workers_runs_alone_and_counts_attempts(
    queue: LocalQueue, tmp_path: Path
) -> None:
    now = 1000.0
    queue._clock = lambda: now
    await queue.send([task("doc-bad"), task("doc-2")])
    for _ in range(DEATHS_TOLERATED):
        await asyncio.to_thread(dies_with_tasks_in_hand, tmp_path)
    (alone,) = await queue.receive(limit=10, wait=0)
    assert (alone.task, alone.attempt) == (task("doc-bad"), 1)
    assert await tasks_of(queue) == []
    await queue.finish(alone)
    (other,) = await queue.receive(limit=10, wait=0)
    assert other.task == task("doc-2")


async def test_a_death_while_running_alone_counts_as_an_attempt(queue: LocalQueue, tmp_path: Path) -> None:
    await queue.send([task("doc-bad")])
    for _ in range(DEATHS_TOLERATED + 1):
        await asyncio.to_thread(dies_with_tasks_in_hand, tmp_path)
    await queue.send([task("doc-2")])
    (other,) = await queue.receive(limit=10, wait=0)
    assert other.task == task("doc-2")
    await queue.finish(other)
    (again,) = await queue.receive(limit=10, wait=10)
    assert (again.task, again.attempt) == (task("doc-bad"), 2)


async def test_a_second_worker_gets_no_task_of_the_group_until_the_first_ends(
    queue: LocalQueue, tmp_path: Path
) -> None:
    await queue.send([task()])
    assert await tasks_of(queue) == [task()]
    second = LocalQueue(tmp_path)
    await second.send([task("doc-2")])
    assert await tasks_of(second) == []
    await queue.close()
    assert await tasks_of(second) == [task(), task("doc-2")]
    await second.close()


async def test_a_task_waiting_for_its_retry_does_not_block_its_group(queue: LocalQueue) -> None:
    await queue.send([task(part=0), task(part=1)])
    first, second = await queue.receive(limit=2, wait=0)
    await queue.retry(first, delay=60)
    await queue.finish(second)
    await queue.send([task(part=2)])
    assert await tasks_of(queue) == [task(part=2)]


async def test_workspaces_take_turns(queue: LocalQueue) -> None:
    for workspace in ("a", "b", "c"):
        await queue.send([task(f"doc-{n}", workspace=workspace) for n in range(20)])
    assert [each.workspace for each in await tasks_of(queue, limit=6)] == ["a", "b", "c", "a", "b", "c"]


class Places:
    """A worker's places: all are taken, and as soon as the longest taken one is free another task gets it."""

    def __init__(self, queue: LocalQueue, parallel: int) -> None:
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
    queue: LocalQueue, parallel: int, flooding: str, stages: tuple[Stage, Stage]
) -> None:
    """The flood was there first, and fills all places of the worker that it may have."""
    many, one = stages
    places = Places(queue, parallel)
    await queue.send([task(f"doc-{n}", stage=many, workspace=flooding) for n in range(200)])
    await places.turns(2 * parallel)
    await queue.send([task(stage=one, workspace="m")])
    assert "m" in await places.turns(3)


@pytest.mark.attack("exhausted resources")
async def test_many_workspaces_share_the_turns_alike(queue: LocalQueue) -> None:
    for number in range(40):
        await queue.send([task(f"doc-{n}", workspace=f"w{number}") for n in range(10)])
    assert set(Counter(await Places(queue, 8).turns(80)).values()) == {2}


async def test_embedding_precedes_older_enrichment(queue: LocalQueue) -> None:
    await queue.send([task("doc-1", stage="enrich"), task("doc-2")])
    assert await tasks_of(queue, limit=1) == [task("doc-2")]


async def test_a_document_is_not_enriched_before_all_of_it_is_embedded(queue: LocalQueue) -> None:
    await queue.send([task(stage="enrich"), task(part=0), task(part=1)])
    first, second = await queue.receive(limit=10, wait=0)
    assert {first.task.stage, second.task.stage} == {"embed"}
    await queue.finish(first)
    await queue.retry(second, delay=60)
    assert await tasks_of(queue) == []


async def test_enrichment_leaves_capacity_for_new_text(queue: LocalQueue) -> None:
    await queue.send([task(f"doc-{n}", stage="enrich", workspace=f"w-{n}") for n in range(50)])
    free = 16
    while deliveries := await queue.receive(limit=free, wait=0):
        free -= len(deliveries)
    assert free == 1


async def test_the_next_free_place_is_for_the_workspace_with_the_fewest_documents_being_enriched(
    queue: LocalQueue,
) -> None:
    await queue.send([task(f"doc-{number}", stage="enrich") for number in range(100)])
    held: list[Delivery] = []
    for _ in range(5):
        held += await queue.receive(limit=8 - len(held), wait=0)
    assert len(held) == 7
    await queue.send([task(stage="enrich", workspace="small")])
    await queue.finish(held.pop())
    assert [each.workspace for each in await tasks_of(queue, limit=8 - len(held))] == ["small"]


async def test_a_worker_with_one_slot_enriches_too(queue: LocalQueue) -> None:
    await queue.send([task(stage="enrich")])
    assert await tasks_of(queue, limit=1) == [task(stage="enrich")]


async def test_an_expired_delivery_cannot_finish_the_task(queue: LocalQueue) -> None:
    now = 1000.0
    queue._clock = lambda: now
    await queue.send([task()])
    (old,) = await queue.receive(limit=1, wait=0)
    now += 3600
    (new,) = await queue.receive(limit=1, wait=0)
    await queue.finish(old)
    await queue.bury(old, "too late")
    await queue.retry(old, delay=0)
    assert await queue.stats() == QueueStats(pending=0, processing=1, dead=0)
    await queue.finish(new)
    assert await queue.stats() == QueueStats(0, 0, 0)


async def test_sending_a_task_again_removes_its_dead_letter(queue: LocalQueue) -> None:
    await queue.send([task()])
    (delivery,) = await queue.receive(limit=1, wait=0)
    await queue.bury(delivery, "no")
    await queue.send([task()])
    assert await queue.stats() == QueueStats(pending=1, processing=0, dead=0)


async def test_deleting_a_document_drops_its_tasks_even_running_ones(queue: LocalQueue) -> None:
    await queue.send([task(), task("doc-2")])
    first, _ = await queue.receive(limit=10, wait=0)
    await queue.send([task(part=1)])
    await queue.discard(workspace="library", document_id="doc-1")
    assert await queue.stats() == QueueStats(pending=0, processing=1, dead=0)
    await queue.finish(first)


async def test_a_deleted_documents_dead_letters_are_forgotten(queue: LocalQueue) -> None:
    await queue.send([task(), task("doc-2")])
    for delivery in await queue.receive(limit=10, wait=0):
        await queue.bury(delivery, "no")
    await queue.discard(workspace="library", document_id="doc-1")
    assert [letter.task for letter in await queue.dead()] == [task("doc-2")]


async def test_one_process_at_a_time_is_the_leader(queue: LocalQueue, tmp_path: Path) -> None:
    other = LocalQueue(tmp_path)
    assert not queue.leads()
    for each in (queue, other):
        await each.receive(limit=1, wait=0)
    assert (queue.leads(), other.leads()) == (True, False)
    await queue.close()
    await other.receive(limit=1, wait=0)
    assert (queue.leads(), other.leads()) == (False, True)
    await other.close()


async def test_counts_can_be_limited_to_a_workspace(queue: LocalQueue) -> None:
    await queue.send([task(), task("doc-2", workspace="other")])
    assert (await queue.stats_of("other")).pending == 1


async def test_asking_makes_no_file(queue: LocalQueue, tmp_path: Path) -> None:
    assert await queue.stats() == QueueStats(0, 0, 0)
    assert await queue.dead() == []
    assert await queue.revive() == 0
    await queue.discard(workspace="library", document_id="doc-1")
    await queue.close()
    assert list(tmp_path.iterdir()) == []


async def test_several_processes_send_at_once(queue: LocalQueue, tmp_path: Path) -> None:
    def send(number: int) -> None:
        async def sent() -> None:
            own = LocalQueue(tmp_path)
            for part in range(50):
                await own.send([task(f"doc-{number}", part)])
            await own.close()

        asyncio.run(sent())

    processes = [FORK.Process(target=send, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in processes] == [0] * 4
    assert (await queue.stats()).pending == 200


async def test_a_damaged_file_is_reported_as_damaged(queue: LocalQueue, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 100)
    with pytest.raises(ServiceUnavailable, match="damaged"):
        await queue.send([task()])


async def test_a_file_that_cannot_be_opened_is_not_to_be_moved_away(queue: LocalQueue, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(
        ServiceUnavailable, match=r"cannot be used now: unable to open.*Check the permissions"
    ) as failed:
        await queue.send([task()])
    assert failed.value.component == "queue"
    assert not re.search("damaged|move", failed.value.message, re.IGNORECASE)


async def test_a_file_of_another_version_is_refused_unchanged(queue: LocalQueue, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / FILE_NAME)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(ServiceUnavailable, match="format 99"):
        await queue.send([task()])
