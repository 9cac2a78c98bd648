"""The index queue port: a file, PostgreSQL, and a file with messages of SQS keep the same contract."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from cragside.domain.indexing import Delivery, QueueStats, Stage, Task
from cragside.store.queues.sql import TaskQueue
from tests.queues import Queues, file_queues, postgres_queues, sqs_queues

Make = Callable[[], TaskQueue]
# Lets so many seconds pass for the queues. Their leases take two.
PassBy = Callable[[float], Awaitable[None]]


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed", workspace: str = "library") -> Task:
    return Task(workspace, document, f"{document}-sha", part, stage)


@pytest.fixture(params=["file", "sqs", pytest.param("postgres", marks=pytest.mark.services("postgres"))])
def queues(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queues]:
    if request.param == "file":
        yield file_queues(tmp_path / "home")
    elif request.param == "sqs":
        with sqs_queues(tmp_path / "home", monkeypatch) as made:
            yield made
    else:
        with postgres_queues(request.getfixturevalue("postgres")) as made:
            yield made


@pytest.fixture
def make(queues: Queues) -> Make:
    return queues.make


@pytest.fixture
def pass_by(queues: Queues) -> PassBy:
    return queues.pass_by


@pytest.fixture
async def queue(make: Make) -> AsyncIterator[TaskQueue]:
    made = make()
    yield made
    await made.close()


async def received(queue: TaskQueue, limit: int = 10, wait: float = 0) -> list[Delivery]:
    return await queue.receive(limit=limit, wait=wait)


async def tasks_of(queue: TaskQueue, limit: int = 10) -> list[Task]:
    return [delivery.task for delivery in await received(queue, limit)]


async def test_a_received_task_equals_the_sent_one_and_has_attempt_1(queue: TaskQueue) -> None:
    sent = task("dök-1", part=3)
    await queue.send([sent])
    (delivery,) = await received(queue)
    assert (delivery.task, delivery.attempt) == (sent, 1)


async def test_an_empty_queue_returns_no_tasks(queue: TaskQueue) -> None:
    await queue.send([])
    assert await received(queue) == []


async def test_tasks_of_a_group_are_received_in_order(queue: TaskQueue) -> None:
    sent = [task(part=part) for part in range(5)]
    await queue.send(sent[:3])
    await queue.send(sent[3:])
    assert await tasks_of(queue) == sent


async def test_receive_returns_at_most_the_requested_number(queue: TaskQueue) -> None:
    await queue.send([task(f"doc-{number}") for number in range(4)])
    assert len(await received(queue, limit=3)) == 3
    assert len(await received(queue, limit=3)) == 1


async def test_a_task_sent_twice_while_queued_is_received_once(queue: TaskQueue) -> None:
    await queue.send([task()])
    await queue.send([task(), task(part=1)])
    assert await tasks_of(queue) == [task(), task(part=1)]
    assert await received(queue) == []


async def test_a_finished_task_can_be_sent_again(queue: TaskQueue) -> None:
    for _ in range(2):
        await queue.send([task()])
        (delivery,) = await received(queue)
        assert delivery.task == task()
        await queue.finish(delivery)


async def test_a_task_sent_while_an_equal_one_runs_is_processed_again(queue: TaskQueue) -> None:
    await queue.send([task()])
    (first,) = await received(queue)
    await queue.send([task()])
    assert await received(queue) == []
    await queue.finish(first)
    assert await tasks_of(queue) == [task()]


async def test_only_missing_tasks_are_restored(queue: TaskQueue, make: Make) -> None:
    await queue.send([task("doc-1"), task("doc-2")])
    (first,) = await received(queue, limit=1)
    other = make()
    assert await other.restore([task("doc-1"), task("doc-2"), task("doc-3")]) == 1
    assert await other.restore([]) == 0
    await other.close()
    assert await tasks_of(queue) == [task("doc-2"), task("doc-3")]
    await queue.finish(first)
    assert await received(queue) == []


async def test_a_group_has_one_task_in_progress_at_a_time(queue: TaskQueue) -> None:
    await queue.send([task(part=0), task(part=1), task("doc-2")])
    (first,) = await received(queue, limit=1)
    assert first.task == task(part=0)
    assert await tasks_of(queue) == [task("doc-2")]
    await queue.finish(first)
    assert await tasks_of(queue) == [task(part=1)]


async def test_each_document_has_its_own_group(queue: TaskQueue) -> None:
    await queue.send([task(stage="enrich"), task(part=1, stage="enrich"), task("doc-2", stage="enrich")])
    (first,) = await received(queue, limit=1)
    assert await tasks_of(queue) == [task("doc-2", stage="enrich")]
    await queue.finish(first)
    assert await tasks_of(queue) == [task(part=1, stage="enrich")]


async def test_new_text_of_a_document_does_not_wait_for_the_enrichment_of_the_old_one(queue: TaskQueue) -> None:
    await queue.send([task(stage="enrich")])
    assert await tasks_of(queue) == [task(stage="enrich")]
    await queue.send([task()])
    assert await tasks_of(queue) == [task()]


async def test_a_finished_task_is_not_received_again(queue: TaskQueue, pass_by: PassBy) -> None:
    await queue.send([task()])
    (delivery,) = await received(queue)
    await queue.finish(delivery)
    await pass_by(2.1)
    assert await received(queue) == []


async def test_an_expired_lease_returns_the_task_with_a_higher_attempt(queue: TaskQueue, pass_by: PassBy) -> None:
    await queue.send([task()])
    assert len(await received(queue)) == 1
    await pass_by(1.9)
    assert await received(queue) == []
    await pass_by(0.2)
    (again,) = await received(queue)
    assert (again.task, again.attempt) == (task(), 2)


async def test_whoever_waits_gets_a_task_when_its_lease_ends(queue: TaskQueue, pass_by: PassBy) -> None:
    await queue.send([task()])
    assert len(await received(queue)) == 1
    waiting = asyncio.create_task(received(queue, wait=5))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await pass_by(2.1)
    (again,) = await waiting
    assert (again.task, again.attempt) == (task(), 2)


async def test_a_lease_that_is_renewed_does_not_run_out(queue: TaskQueue, pass_by: PassBy) -> None:
    await queue.send([task()])
    (delivery,) = await received(queue)
    for _ in range(4):
        await pass_by(0.6)
        await queue.extend(delivery)
    assert await received(queue) == []


async def test_a_failed_task_is_retried_after_its_delay(queue: TaskQueue, pass_by: PassBy) -> None:
    await queue.send([task()])
    (delivery,) = await received(queue)
    await queue.retry(delivery, delay=2)
    assert await received(queue) == []
    await pass_by(2.1)
    (again,) = await received(queue)
    assert (again.task, again.attempt) == (task(), 2)


async def test_a_deferred_task_is_received_after_its_delay(queue: TaskQueue, pass_by: PassBy) -> None:
    await queue.send([task()])
    (delivery,) = await received(queue)
    await queue.put_off(delivery, delay=1)
    assert await received(queue) == []
    await pass_by(1.1)
    (again,) = await received(queue)
    assert (again.task, again.attempt) == (task(), 1)


async def test_a_failed_task_without_delay_is_retried_at_once(queue: TaskQueue) -> None:
    await queue.send([task()])
    for attempt in (1, 2, 3):
        (delivery,) = await received(queue)
        assert delivery.attempt == attempt
        await queue.retry(delivery, delay=0)


async def test_a_buried_task_is_a_dead_letter_with_its_reason(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2")])
    first, second = await received(queue)
    await queue.retry(first, delay=0)
    (first,) = await received(queue)
    await queue.bury(first, "the text is blank")
    await queue.finish(second)
    (letter,) = await queue.dead()
    assert (letter.task, letter.reason, letter.attempts) == (task(), "the text is blank", 2)
    assert letter.id
    assert letter.at.startswith("20")
    assert await received(queue) == []


async def test_a_task_that_is_given_up_twice_is_one_dead_letter_with_the_later_reason(queue: TaskQueue) -> None:
    await queue.send([task()])
    (first,) = await received(queue)
    await queue.send([task()])
    await queue.bury(first, "first")
    (second,) = await received(queue)
    await queue.bury(second, "second")
    assert [letter.reason for letter in await queue.dead()] == ["second"]


async def test_asking_for_dead_letters_leaves_them_where_they_are(queue: TaskQueue) -> None:
    await queue.send([task()])
    await queue.bury((await received(queue))[0], "no")
    assert len(await queue.dead()) == len(await queue.dead()) == 1


async def test_dead_letters_are_listed_latest_first_up_to_the_limit(queue: TaskQueue, pass_by: PassBy) -> None:
    for number in range(3):
        await queue.send([task(f"doc-{number}")])
        await queue.bury((await received(queue))[0], "no")
        await pass_by(0.01)
    assert [letter.task.document_id for letter in await queue.dead(limit=2)] == ["doc-2", "doc-1"]


async def test_all_dead_letters_of_a_large_group_are_listed(queue: TaskQueue) -> None:
    await queue.send([task(part=part) for part in range(25)])
    while batch := await received(queue):
        for delivery in batch:
            await queue.bury(delivery, "no")
    assert sorted(letter.task.part for letter in await queue.dead()) == list(range(25))
    assert await queue.revive() == 25
    assert await queue.dead() == []


async def test_dead_letters_are_listed_by_workspace(queue: TaskQueue) -> None:
    await queue.send([task(), task(workspace="other")])
    for delivery in await received(queue):
        await queue.bury(delivery, delivery.task.workspace)
    assert [letter.reason for letter in await queue.dead(workspace="other")] == ["other"]
    assert len(await queue.dead()) == 2


async def test_a_revived_task_starts_with_attempt_1(queue: TaskQueue) -> None:
    await queue.send([task()])
    (delivery,) = await received(queue)
    await queue.retry(delivery, delay=0)
    await queue.bury((await received(queue))[0], "no")
    assert await queue.revive() == 1
    assert await queue.dead() == []
    (again,) = await received(queue)
    assert (again.task, again.attempt) == (task(), 1)


async def test_only_the_requested_tasks_are_revived(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2"), task(workspace="other")])
    for delivery in await received(queue):
        await queue.bury(delivery, "no")
    assert await queue.revive(workspace="library", document_id="doc-2") == 1
    assert await queue.revive(workspace="nowhere") == 0
    assert await queue.revive(workspace="other") == 1
    assert [letter.task for letter in await queue.dead()] == [task()]
    assert {each.workspace for each in await tasks_of(queue)} == {"library", "other"}


async def test_forgetting_a_deleted_document_leaves_the_tasks_and_dead_letters_of_others(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2")])
    for delivery in await received(queue):
        await queue.bury(delivery, "no")
    await queue.send([task(part=1), task("doc-2", part=1)])
    await queue.discard(workspace="library", document_id="doc-1")
    assert [letter.task for letter in await queue.dead()] == [task("doc-2")]
    assert await tasks_of(queue) == [task("doc-2", part=1)]


async def test_removing_a_workspace_keeps_the_tasks_of_others(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2"), task(workspace="other")])
    await queue.discard(workspace="library")
    assert await queue.stats_of("library") == QueueStats(0, 0, 0)
    assert await tasks_of(queue) == [task(workspace="other")]


async def test_counts_of_a_workspace_exclude_other_workspaces(queue: TaskQueue) -> None:
    await queue.send([task(), task(workspace="other"), task("doc-2", workspace="other")])
    (first,) = await received(queue, limit=1)
    assert await queue.stats_of("nobody") == QueueStats(0, 0, 0)
    assert await queue.stats_of("library") == QueueStats(0, 1, 0)
    assert await queue.stats_of("other") == QueueStats(2, 0, 0)
    await queue.finish(first)


async def test_tasks_are_counted_by_state(queue: TaskQueue) -> None:
    await queue.send([task(f"doc-{number}") for number in range(4)])
    first, second = await received(queue, limit=2)
    await queue.bury(first, "no")
    stats = await queue.stats()
    assert (stats.pending, stats.processing, stats.dead) == (2, 1, 1)
    await queue.finish(second)
    assert (await queue.stats()).processing == 0


async def test_a_reopened_queue_has_the_sent_tasks(make: Make) -> None:
    first, second = make(), make()
    await first.send([task()])
    await first.close()
    assert await tasks_of(second) == [task()]
    await second.close()


async def test_closing_a_worker_releases_its_tasks_at_once(make: Make) -> None:
    first, second = make(), make()
    await first.send([task()])
    assert len(await received(first)) == 1
    await first.close()
    assert await tasks_of(second) == [task()]
    await second.close()


async def test_it_can_be_used_again_after_it_was_closed(queue: TaskQueue) -> None:
    await queue.send([task()])
    await queue.close()
    assert await tasks_of(queue) == [task()]


async def test_a_worker_that_wakes_late_renews_nothing(make: Make) -> None:
    late, other = make(), make()
    await late.send([task(stage="enrich")])
    (delivery,) = await received(late)
    await late.close()
    (taken,) = await received(other)
    await late.extend(delivery)
    await late.finish(delivery)
    assert await received(other) == []
    await other.finish(taken)
    assert (await other.stats()).processing == 0
    await other.close()
