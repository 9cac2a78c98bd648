import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cragside.application.attempts import OUTAGE_PATIENCE, Attempts, Circuit, Handled, Indexer, reason_of
from cragside.application.worker import Sweeper, Worker
from cragside.domain.errors import (
    ConfigurationError,
    InputRefused,
    ProcessingError,
    ServiceUnavailable,
    ValidationError,
)
from cragside.domain.indexing import QueueStats, Stage, Task
from cragside.store.queues.local import FileDriver, local_queue
from cragside.store.queues.sql import TaskQueue
from tests.clocks import MovedClock
from tests.libraries import EchoAnnotator, MemoryWorkspaces

# How a worker runs that a supervisor starts, and the one that a server starts.
STAYING: list[dict[str, Any]] = [{}, {"until_idle": True, "idle_seconds": 30.0}]
DOWN = ServiceUnavailable("annotator", "The model host does not answer.")


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed", workspace: str = "library") -> Task:
    return Task(workspace, document, f"{document}-sha", part, stage)


class HastyQueue(TaskQueue):
    """Retries come at once; the delays that were asked for are noted."""

    def __init__(self, folder: Path) -> None:
        self.clock = MovedClock()
        # Time passes faster than leases can be renewed.
        super().__init__(FileDriver(folder, self.clock), lease_seconds=1e9, clock=self.clock)
        self.delays: list[float] = []

    async def retry(self, delivery: Any, *, delay: float) -> None:
        self.delays.append(delay)
        await super().retry(delivery, delay=0)


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[HastyQueue]:
    made = HastyQueue(tmp_path)
    yield made
    await made.close()


def attempts_of(queue: HastyQueue, workspaces: MemoryWorkspaces, **given: Any) -> Attempts:
    indexer = Indexer(workspaces, EchoAnnotator())
    return Attempts(queue, indexer, attempts=3, chance=lambda: 0.0, clock=queue.clock, **given)


def worker_of(queue: HastyQueue, workspaces: MemoryWorkspaces, **given: Any) -> Worker:
    attempts = given.pop("attempts", None) or attempts_of(queue, workspaces)
    return Worker(
        queue, attempts, Sweeper(queue, workspaces), **{"parallel": 8, "grace": 5.0, "clock": queue.clock, **given}
    )


def failing(*errors: Exception) -> Callable[[Task], None]:
    """Raises these, one a call, and then nothing."""
    left = list(errors)

    def before(_: Task) -> None:
        if left:
            raise left.pop(0)

    return before


async def test_all_tasks_are_processed_and_the_queue_is_empty(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces()
    sent = [task(f"doc-{n}", part, stage) for n in range(5) for part in range(3) for stage in ("embed", "enrich")]
    await queue.send(sent)
    told: list[Handled] = []
    tally = await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True, progress=told.append))
    assert sorted(workspaces.done(), key=str) == sorted(sent, key=str)
    assert tally == {"done": 30}
    assert {handled.outcome for handled in told} == {"done"}
    assert (await queue.stats()).pending == 0


async def test_a_worker_ends_after_as_long_without_tasks_as_it_was_told(queue: HastyQueue) -> None:
    began = queue.clock.monotonic()
    await queue.send([task()])
    worker = worker_of(queue, MemoryWorkspaces())
    assert await queue.clock.run(worker.run(until_idle=True, idle_seconds=30.0)) == {"done": 1}
    assert queue.clock.monotonic() - began >= 30


async def test_tasks_run_in_parallel_up_to_the_limit(queue: HastyQueue) -> None:
    running, most = 0, 0

    async def before(_: Task) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1

    await queue.send([task(f"doc-{n}") for n in range(10)])
    await queue.clock.run(worker_of(queue, MemoryWorkspaces(before=before), parallel=4).run(until_idle=True))
    assert most == 4


async def test_a_failed_task_is_tried_again_after_twice_the_time(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces(before=failing(ProcessingError("once"), ProcessingError("twice")))
    await queue.send([task()])
    tally = await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True))
    assert (queue.delays, tally) == ([2.0, 4.0], {"retried": 2, "done": 1})
    assert workspaces.failures == []


async def test_a_task_that_fails_too_often_is_buried_and_recorded_with_its_reason(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces(before=failing(*[ProcessingError("It broke.")] * 3))
    await queue.send([task()])
    tally = await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True))
    (letter,) = await queue.dead()
    assert (letter.task, letter.reason, letter.attempts) == (task(), "It broke.", 3)
    assert workspaces.failures == [(task(), "It broke.")]
    assert tally == {"retried": 2, "buried": 1}


async def test_errors_that_a_retry_cannot_fix_are_buried_at_once(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces(before=failing(ValidationError("The text is blank.")))
    await queue.send([task()])
    assert await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True)) == {"buried": 1}
    assert [letter.reason for letter in await queue.dead()] == ["The text is blank."]


async def test_a_task_that_cannot_be_recorded_as_failed_is_not_buried(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces(before=failing(*[ProcessingError("It broke.")] * 3))

    async def failed(task: Task, reason: str) -> None:
        raise ServiceUnavailable("knowledge_base", "The disk is full.")

    workspaces.failed = failed  # type: ignore[method-assign]
    await queue.send([task()])
    assert await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True)) == {"retried": 3, "done": 1}
    assert await queue.dead() == []


async def test_reasons_quote_no_errors_but_our_own() -> None:
    assert reason_of(KeyError("secret")) == "Something inside failed (KeyError)."
    assert reason_of(DOWN) == "annotator: The model host does not answer."


async def test_delays_double_up_to_a_minute_and_differ_by_chance(queue: HastyQueue) -> None:
    attempts = attempts_of(queue, MemoryWorkspaces())
    assert [attempts.delay(attempt) for attempt in (1, 2, 5, 6, 7, 2000)] == [2, 4, 32, 60, 60, 60]
    late = Attempts(queue, Indexer(MemoryWorkspaces(), EchoAnnotator()), attempts=3, chance=lambda: 1.0)
    assert late.delay(2) == 5


async def test_the_worker_waits_for_an_outage_and_gives_no_task_up(queue: HastyQueue) -> None:
    failures = 60
    workspaces = MemoryWorkspaces(before=failing(*[DOWN] * failures))
    sent = [task(f"doc-{n}", stage="enrich") for n in range(6)]
    await queue.send(sent)
    attempts = attempts_of(queue, workspaces, longest_pause=0.0)
    tally = await queue.clock.run(worker_of(queue, workspaces, attempts=attempts).run(until_idle=True))
    assert tally == {"retried": failures, "done": 6}
    assert await queue.dead() == []


async def test_an_outage_that_affects_one_task_only_buries_that_task(queue: HastyQueue) -> None:
    def before(each: Task) -> None:
        if each.document_id == "doc-bad":
            raise DOWN

    workspaces = MemoryWorkspaces(before=before)
    attempts = attempts_of(queue, workspaces)
    for number in range(3):
        await queue.send([task("doc-bad"), task(f"doc-{number}")])
        for delivery in await queue.receive(limit=5, wait=0):
            await attempts.handle(delivery, wait=False)
    assert [letter.task.document_id for letter in await queue.dead()] == ["doc-bad"]


async def test_workers_that_start_during_an_outage_give_no_task_up(queue: HastyQueue) -> None:
    def before(_: Task) -> None:
        raise DOWN

    await queue.send([task()])
    outcomes = []
    for _ in range(5):
        for delivery in await queue.receive(limit=1, wait=0):
            # A new worker does not know whether the task is to blame: it has seen none succeed.
            handled = await attempts_of(queue, MemoryWorkspaces(before=before)).handle(delivery)
            outcomes.append(handled.outcome)
    assert outcomes == ["retried"] * 5


async def test_an_outage_is_not_waited_for_for_ever(queue: HastyQueue) -> None:
    def before(_: Task) -> None:
        raise DOWN

    await queue.send([task()])
    workspaces = MemoryWorkspaces(before=before)
    attempts = attempts_of(queue, workspaces, longest_pause=0.0)
    tally = await queue.clock.run(worker_of(queue, workspaces, attempts=attempts).run(until_idle=True))
    assert tally == {"retried": 3 * OUTAGE_PATIENCE - 1, "buried": 1}


async def test_a_task_whose_input_is_refused_is_given_up_soon_and_holds_no_other_up(queue: HastyQueue) -> None:
    def before(each: Task) -> None:
        if each.document_id == "doc-bad":
            raise InputRefused("embedder", "the host answered 400")

    await queue.send([task("doc-bad"), task("doc-good")])
    workspaces = MemoryWorkspaces(before=before)
    attempts = attempts_of(queue, workspaces, longest_pause=0.0)
    tally = await queue.clock.run(worker_of(queue, workspaces, attempts=attempts).run(until_idle=True))
    assert tally == {"done": 1, "retried": 2, "buried": 1}
    assert [letter.reason for letter in await queue.dead()] == ["embedder: the host answered 400"]


async def test_embedding_continues_while_the_enriching_model_is_down(queue: HastyQueue) -> None:
    def before(each: Task) -> None:
        if each.stage == "enrich":
            raise DOWN

    workspaces = MemoryWorkspaces(before=before)
    worker = worker_of(queue, workspaces, grace=0.01)
    await queue.send([task(f"doc-{n}", stage="enrich") for n in range(20)])
    running = asyncio.create_task(worker.run())
    await queue.clock.run_until(lambda: queue.delays, within=20)
    await queue.send([task("new")])
    await queue.clock.run_until(lambda: task("new") in workspaces.done(), within=20)
    worker.stop()
    await queue.clock.run(running)
    assert workspaces.done() == [task("new")]


@pytest.mark.attack("noisy neighbours")
@pytest.mark.parametrize("stage", ["embed", "enrich"])
@pytest.mark.parametrize(
    "error", [ServiceUnavailable("knowledge_base", "The store is damaged."), ConfigurationError("Another model.")]
)
@pytest.mark.parametrize("how", STAYING)
async def test_a_failing_store_does_not_delay_other_workspaces(
    queue: HastyQueue, stage: Stage, error: Exception, how: dict[str, Any]
) -> None:
    tried = asyncio.Event()

    def before(each: Task) -> None:
        if each.workspace == "damaged":
            tried.set()
            raise error

    workspaces = MemoryWorkspaces(before=before)
    worker = worker_of(queue, workspaces, parallel=4)
    await queue.send([task(f"doc-{n}", stage=stage, workspace="damaged") for n in range(30)])
    running = asyncio.create_task(worker.run(sweep=False, **how))
    await queue.clock.run_until(tried.is_set, within=20)
    for n in range(3):
        await queue.send([task(f"doc-{n}", stage=stage)])
        await queue.clock.run_until(lambda done=n: len(workspaces.done()) > done, within=20)
    worker.stop()
    await queue.clock.run(running)
    assert {each.workspace for each in workspaces.done()} == {"library"}
    assert (await queue.stats_of("damaged")).dead == 0


async def test_one_task_at_a_time_probes_an_outage() -> None:
    clock = MovedClock()
    running, most = 0, 0
    circuit = Circuit(clock=clock)
    circuit.failed()

    async def attempt() -> None:
        nonlocal running, most
        async with circuit.passage():
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            circuit.failed()
            running -= 1

    await clock.run(asyncio.gather(*(attempt() for _ in range(6))))
    assert most == 1
    assert clock.slept == [2, 4, 8, 16, 32, 60]


async def test_who_waited_for_an_outage_goes_on_beside_others_when_one_has_ended_it() -> None:
    clock = MovedClock()
    running, most = 0, list[int]()
    circuit = Circuit(clock=clock)
    circuit.failed()

    async def attempt() -> None:
        nonlocal running
        async with circuit.passage():
            running += 1
            await asyncio.sleep(0.01)
            most.append(running)
            circuit.succeeded()
            running -= 1

    await clock.run(asyncio.gather(attempt(), attempt(), attempt()))
    assert (most[:2], clock.slept) == ([1, 2], [2])


async def test_simultaneous_failures_count_once() -> None:
    circuit = Circuit()
    circuit.succeeded()
    for _ in range(10):
        circuit.failed()
    assert not circuit.down


async def test_a_configuration_error_ends_the_run_without_counting_an_attempt(
    queue: HastyQueue,
) -> None:
    workspaces = MemoryWorkspaces(before=failing(ConfigurationError("Unset RAG_EMBEDDING_MODEL.")))
    await queue.send([task()])
    with pytest.raises(ConfigurationError, match="Unset"):
        await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True))
    await queue.close()
    (again,) = await queue.receive(limit=1, wait=0)
    assert (again.attempt, queue.delays) == (1, [])


@pytest.mark.parametrize("how", STAYING)
async def test_a_worker_that_is_to_stay_waits_until_the_configuration_is_mended(
    queue: HastyQueue, caplog: pytest.LogCaptureFixture, how: dict[str, Any]
) -> None:
    workspaces = MemoryWorkspaces(before=failing(ConfigurationError("Unset RAG_EMBEDDING_MODEL.")))
    worker = worker_of(queue, workspaces)
    await queue.send([task()])
    with caplog.at_level(logging.ERROR):
        running = asyncio.create_task(worker.run(**how))
        await queue.clock.run_until(workspaces.done, within=20)
        worker.stop()
        assert await queue.clock.run(running) == {"done": 1}
    assert "Unset RAG_EMBEDDING_MODEL" in caplog.text


async def test_a_stopped_worker_lets_running_tasks_end(queue: HastyQueue) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def before(_: Task) -> None:
        begun.set()
        await stopped.wait()

    # It waits for its only task, not for others: it learns at once that it is stopped.
    worker = worker_of(queue, MemoryWorkspaces(before=before), parallel=1)
    await queue.send([task()])
    running = asyncio.create_task(worker.run())
    await begun.wait()
    worker.stop()
    asyncio.get_running_loop().call_later(0.01, stopped.set)
    assert await queue.clock.run(running) == {"done": 1}


async def test_tasks_that_do_not_end_in_time_go_back_uncounted(queue: HastyQueue) -> None:
    worker = worker_of(queue, MemoryWorkspaces(before=lambda _: asyncio.sleep(60)), grace=0.01)
    await queue.send([task()])
    running = asyncio.create_task(worker.run())
    while (await queue.stats()).processing == 0:
        await asyncio.sleep(0.01)
    worker.stop()
    assert await queue.clock.run(running) == {}
    await queue.close()
    (again,) = await queue.receive(limit=1, wait=0)
    assert again.attempt == 1


async def test_the_sweep_queues_tasks_that_a_crash_left_out(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"a": [task("doc-1", workspace="a")], "b": [task("doc-2", workspace="b")]}
    await queue.send([task("doc-2", workspace="b")])
    await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True))
    assert sorted(each.document_id for each in workspaces.done()) == ["doc-1", "doc-2"]


async def test_parts_of_a_killed_worker_are_pending_when_the_next_one_starts(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"a": [], "b": []}
    await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True))
    assert workspaces.log == [("back", None), ("back", None)]


async def test_a_waiting_worker_sweeps_when_it_takes_over(queue: HastyQueue, tmp_path: Path) -> None:
    first = local_queue(tmp_path)
    await first.receive(limit=1, wait=0)
    workspaces, asked = MemoryWorkspaces(), []
    workspaces.unfinished = {"a": [task(workspace="a")]}
    names = workspaces.names

    async def noted() -> Any:
        asked.append(first.leads())
        return await names()

    workspaces.names = noted  # type: ignore[method-assign]
    assert await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True)) == {}
    assert (asked, await queue.stats()) == ([], QueueStats(0, 0, 0))

    worker = worker_of(queue, workspaces)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0.05)
    queue.clock.move(10)
    assert (asked, await queue.stats()) == ([], QueueStats(0, 0, 0))
    await first.close()
    await queue.clock.run_until(workspaces.done, within=10)
    worker.stop()
    assert await queue.clock.run(running) == {"done": 1}
    assert asked == [False]


async def test_a_worker_outlives_the_idle_time_of_the_one_that_leads_and_then_sweeps(
    queue: HastyQueue, tmp_path: Path
) -> None:
    first = local_queue(tmp_path)
    await first.receive(limit=1, wait=0)
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"a": [task(workspace="a")]}
    running = asyncio.create_task(worker_of(queue, workspaces).run(until_idle=True, idle_seconds=60))
    await asyncio.sleep(0.05)
    queue.clock.move(70)
    await asyncio.sleep(0.05)
    await first.close()
    assert await queue.clock.run(running) == {"done": 1}


async def test_a_workspace_that_cannot_be_opened_does_not_keep_others_from_the_sweep(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"a": [], "b": [task(workspace="b")]}
    open_workspace = workspaces.open

    async def opened(workspace: str) -> Any:
        if workspace == "a":
            raise ConfigurationError("Workspace a was built with another model.")
        return await open_workspace(workspace)

    workspaces.open = opened  # type: ignore[method-assign]
    assert await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True)) == {"done": 1}


async def test_without_a_sweep_only_the_queue_is_asked(queue: HastyQueue) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"a": [task(workspace="a")]}
    assert await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True, sweep=False)) == {}


async def test_leases_are_renewed_while_a_task_takes_long(queue: HastyQueue) -> None:
    renewed, often = list[Task](), asyncio.Event()

    async def extend(delivery: Any) -> None:
        renewed.append(delivery.task)
        if len(renewed) == 3:
            often.set()

    queue.extend = extend  # type: ignore[method-assign]
    workspaces = MemoryWorkspaces(before=lambda _: often.wait())
    await queue.send([task()])
    await queue.clock.run(worker_of(queue, workspaces).run(until_idle=True))
    assert set(renewed) == {task()}


async def test_a_queue_that_is_down_is_asked_again(queue: HastyQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    receive, down = queue.receive, failing(*[ServiceUnavailable("queue", "It is away.")] * 3)

    async def received(**given: Any) -> Any:
        down(task())
        return await receive(**given)

    monkeypatch.setattr(queue, "receive", received)
    await queue.send([task()])
    worker = worker_of(queue, MemoryWorkspaces())
    assert await queue.clock.run(worker.run(until_idle=True)) == {"done": 1}
    assert {2, 4, 8} <= set(queue.clock.slept)


async def test_a_task_that_could_not_be_settled_comes_again_before_its_lease_ends(
    queue: HastyQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = failing(*[ServiceUnavailable("queue", "It is away.")] * 3)

    def faulty(call: Any) -> Any:
        async def called(delivery: Any, **given: Any) -> None:
            down(delivery.task)
            await call(delivery, **given)

        return called

    for name in ("finish", "put_off"):
        monkeypatch.setattr(queue, name, faulty(getattr(queue, name)))
    await queue.send([task()])
    began = queue.clock.time()
    tally = await queue.clock.run(worker_of(queue, MemoryWorkspaces()).run(until_idle=True))
    assert tally == {"done": 1}
    assert queue.clock.time() - began < 60, "a lease takes a minute"
