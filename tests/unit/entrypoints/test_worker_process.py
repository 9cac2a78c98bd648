import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.indexing import Task
from cragside.entrypoints.worker_process import WorkerProcess, executing, keeping_worker
from cragside.store.queues.local import local_queue
from cragside.store.queues.sql import TaskQueue
from tests.clocks import MovedClock

TASK = Task("library", "doc-1", "sha", 0, "embed")
# Notes how it was called, empties the queue, and ends with what the file `code` says.
_PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from cragside.store.queues.local import local_queue
home = Path(sys.argv[1])
with open(home / "calls", "a") as calls:
    calls.write(f"{os.getpid()} {sys.argv[-1]}\\n")
async def work():
    queue = local_queue(home)
    for delivery in await queue.receive(limit=10, wait=0):
        await queue.finish(delivery)
    await queue.close()
code = (home / "code").read_text() if (home / "code").exists() else "0"
if code == "stay":
    import time
    time.sleep(60)
if code == "0":
    asyncio.run(work())
sys.exit(int(code))
"""


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[TaskQueue]:
    made = local_queue(tmp_path)
    yield made
    await made.close()


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


def process_of(queue: TaskQueue, home: Path, clock: MovedClock) -> WorkerProcess:
    command = [sys.executable, "-c", _PROGRAM, str(home)]
    run = executing(command, {**os.environ, "PYTHONPATH": "layers/core/python"})
    return WorkerProcess(queue.stats, run, clock=clock)


def calls(home: Path) -> list[list[str]]:
    return [line.split() for line in (home / "calls").read_text().splitlines()] if (home / "calls").exists() else []


async def until_called(home: Path, times: int, clock: MovedClock) -> None:
    while len(calls(home)) < times:
        await asyncio.sleep(0.02)
        clock.move_on()


async def until_done(queue: TaskQueue, clock: MovedClock) -> None:
    while (await queue.stats()).pending:
        await asyncio.sleep(0.02)
        clock.move_on()


async def test_no_worker_runs_while_the_queue_is_empty(queue: TaskQueue, tmp_path: Path, clock: MovedClock) -> None:
    async with keeping_worker(process_of(queue, tmp_path, clock), at_once=False):
        for _ in range(5):
            await asyncio.sleep(0.02)
            clock.move_on()
    assert calls(tmp_path) == []


async def test_each_new_work_starts_a_worker_and_only_the_first_sweeps(
    queue: TaskQueue, tmp_path: Path, clock: MovedClock
) -> None:
    async with keeping_worker(process_of(queue, tmp_path, clock), at_once=False):
        for times in (1, 2):
            await queue.send([TASK])
            await until_called(tmp_path, times, clock)
            await until_done(queue, clock)
    assert [argument for _, argument in calls(tmp_path)] == ["--sweep", "--no-sweep"]


async def test_a_worker_can_be_started_without_asking_the_queue(
    queue: TaskQueue, tmp_path: Path, clock: MovedClock
) -> None:
    async with keeping_worker(process_of(queue, tmp_path, clock), at_once=True):
        await until_called(tmp_path, 1, clock)
    assert [argument for _, argument in calls(tmp_path)] == ["--sweep"]


async def test_a_failed_worker_is_restarted_and_sweeps(queue: TaskQueue, tmp_path: Path, clock: MovedClock) -> None:
    (tmp_path / "code").write_text("3")
    await queue.send([TASK])
    async with keeping_worker(process_of(queue, tmp_path, clock), at_once=False):
        await until_called(tmp_path, 2, clock)
        (tmp_path / "code").unlink()
        await until_done(queue, clock)
    assert {argument for _, argument in calls(tmp_path)} == {"--sweep"}


async def test_a_failed_start_is_logged_and_repeated(
    queue: TaskQueue,
    tmp_path: Path,
    clock: MovedClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    create, left = asyncio.create_subprocess_exec, [True, True]

    async def created(*command: str, **given: Any) -> Any:
        if left:
            left.pop()
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return await create(*command, **given)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", created)
    await queue.send([TASK])
    async with keeping_worker(process_of(queue, tmp_path, clock), at_once=False), asyncio.timeout(30):
        await until_called(tmp_path, 1, clock)
    assert caplog.text.count("cannot be started (Resource temporarily unavailable)") == 2
    assert calls(tmp_path)[0][1] == "--sweep"


async def test_it_ends_with_the_server(queue: TaskQueue, tmp_path: Path, clock: MovedClock) -> None:
    (tmp_path / "code").write_text("stay")
    async with keeping_worker(process_of(queue, tmp_path, clock), at_once=True):
        await until_called(tmp_path, 1, clock)
    with pytest.raises(ProcessLookupError):
        os.kill(int(calls(tmp_path)[0][0]), 0)
