import asyncio
import multiprocessing
import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType

import pytest

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import QueueStats, Stage, Task
from cragside.store.queues import sql, turns
from cragside.store.queues.local import FILE_NAME, connect, local_queue, translated
from cragside.store.queues.sql import TaskQueue
from tests.clocks import MovedClock

FORK = multiprocessing.get_context("fork")


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed", workspace: str = "library") -> Task:
    return Task(workspace, document, f"{document}-sha", part, stage)


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[TaskQueue]:
    made = local_queue(tmp_path)
    yield made
    await made.close()


async def tasks_of(queue: TaskQueue, limit: int = 10) -> list[Task]:
    return [delivery.task for delivery in await queue.receive(limit=limit, wait=0)]


async def test_a_second_worker_gets_no_task_of_the_group_until_the_first_ends(queue: TaskQueue, tmp_path: Path) -> None:
    await queue.send([task()])
    assert await tasks_of(queue) == [task()]
    second = local_queue(tmp_path)
    await second.send([task("doc-2")])
    assert await tasks_of(second) == []
    await queue.close()
    assert await tasks_of(second) == [task(), task("doc-2")]
    await second.close()


async def test_tasks_that_a_clock_ahead_of_time_added_are_handed_out_once_it_is_right(tmp_path: Path) -> None:
    clock = MovedClock()
    queue = local_queue(tmp_path, clock=clock)
    clock.move(31_536_000)
    await queue.send([task("doc-1"), task("doc-2")])
    (early, _) = await queue.receive(limit=2, wait=0)
    await queue.retry(early, delay=30)
    clock.move(-31_536_000)
    assert await tasks_of(queue) == [task("doc-1")]
    await queue.close()


async def test_an_expired_delivery_cannot_finish_the_task(tmp_path: Path) -> None:
    clock = MovedClock()
    queue = local_queue(tmp_path, clock=clock)
    await queue.send([task()])
    (old,) = await queue.receive(limit=1, wait=0)
    clock.move(3600)
    (new,) = await queue.receive(limit=1, wait=0)
    await queue.finish(old)
    await queue.bury(old, "too late")
    await queue.retry(old, delay=0)
    assert await queue.stats() == QueueStats(pending=0, processing=1, dead=0)
    await queue.finish(new)
    assert await queue.stats() == QueueStats(0, 0, 0)
    await queue.close()


async def test_sending_a_task_again_removes_its_dead_letter(queue: TaskQueue) -> None:
    await queue.send([task()])
    (delivery,) = await queue.receive(limit=1, wait=0)
    await queue.bury(delivery, "no")
    await queue.send([task()])
    assert await queue.stats() == QueueStats(pending=1, processing=0, dead=0)


async def test_deleting_a_document_drops_its_tasks_even_running_ones(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2")])
    first, _ = await queue.receive(limit=10, wait=0)
    await queue.send([task(part=1)])
    await queue.discard(workspace="library", document_id="doc-1")
    assert await queue.stats() == QueueStats(pending=0, processing=1, dead=0)
    await queue.finish(first)


async def test_a_deleted_documents_dead_letters_are_forgotten(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2")])
    for delivery in await queue.receive(limit=10, wait=0):
        await queue.bury(delivery, "no")
    await queue.discard(workspace="library", document_id="doc-1")
    assert [letter.task for letter in await queue.dead()] == [task("doc-2")]


async def test_one_process_at_a_time_is_the_leader(queue: TaskQueue, tmp_path: Path) -> None:
    other = local_queue(tmp_path)
    assert not queue.leads()
    for each in (queue, other):
        await each.receive(limit=1, wait=0)
    assert (queue.leads(), other.leads()) == (True, False)
    await queue.close()
    await other.receive(limit=1, wait=0)
    assert (queue.leads(), other.leads()) == (False, True)
    await other.close()


async def test_counts_can_be_limited_to_a_workspace(queue: TaskQueue) -> None:
    await queue.send([task(), task("doc-2", workspace="other")])
    assert (await queue.stats_of("other")).pending == 1


async def test_asking_makes_no_file(queue: TaskQueue, tmp_path: Path) -> None:
    assert await queue.stats() == QueueStats(0, 0, 0)
    assert await queue.dead() == []
    assert await queue.revive() == 0
    await queue.discard(workspace="library", document_id="doc-1")
    await queue.close()
    assert list(tmp_path.iterdir()) == []


async def test_several_processes_send_at_once(queue: TaskQueue, tmp_path: Path) -> None:
    def send(number: int) -> None:
        async def sent() -> None:
            own = local_queue(tmp_path)
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


async def test_a_damaged_file_is_reported_as_damaged(queue: TaskQueue, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"no database at all" * 100)
    with pytest.raises(ServiceUnavailable, match="damaged"):
        await queue.send([task()])


async def test_a_file_that_cannot_be_opened_is_not_to_be_moved_away(queue: TaskQueue, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(
        ServiceUnavailable, match=r"cannot be used now: unable to open.*Check the permissions"
    ) as failed:
        await queue.send([task()])
    assert failed.value.component == "queue"
    assert not re.search("damaged|move", failed.value.message, re.IGNORECASE)


async def test_a_file_of_another_version_is_refused_unchanged(queue: TaskQueue, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / FILE_NAME)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(ServiceUnavailable, match="format 99"):
        await queue.send([task()])


# As cragside made it while a worker had the turns of workspaces in its memory.
FILE_WITHOUT_TURNS = """
CREATE TABLE task (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, grp TEXT NOT NULL,
    workspace TEXT NOT NULL, document_id TEXT NOT NULL, content_hash TEXT NOT NULL, part INTEGER NOT NULL,
    stage TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL, lease REAL, token TEXT);
CREATE INDEX task_by_key ON task (key);
CREATE INDEX task_by_document ON task (workspace, document_id, stage);
CREATE INDEX task_by_turn ON task (workspace, stage, id) WHERE lease IS NULL;
CREATE INDEX task_in_hand ON task (lease, grp) WHERE lease IS NOT NULL;
CREATE TABLE dead (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE,
    workspace TEXT NOT NULL, document_id TEXT NOT NULL, content_hash TEXT NOT NULL, part INTEGER NOT NULL,
    stage TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, at TEXT NOT NULL);
PRAGMA user_version = 2;
"""
TASK_OF_THEN = (
    "INSERT INTO task (key, grp, workspace, document_id, content_hash, part, stage, due) VALUES (?,?,?,?,?,?,?,0)"
)
DEAD_OF_THEN = "INSERT INTO dead VALUES (1, ?, ?, ?, ?, ?, ?, 'the text is blank', 4, '2026-01-01T00:00:00+00:00')"


def columns(each: Task) -> tuple[object, ...]:
    return each.workspace, each.document_id, each.content_hash, each.part, each.stage


async def test_a_file_of_the_version_before_keeps_its_tasks_and_dead_letters(queue: TaskQueue, tmp_path: Path) -> None:
    """The worker of then died with a task in hand."""
    then = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    then.executescript(FILE_WITHOUT_TURNS)
    for each in (task("doc-1"), task("doc-2")):
        then.execute(TASK_OF_THEN, (each.key, each.group, *columns(each)))
    then.execute("UPDATE task SET lease = 1e12, token = 'then', attempts = 1 WHERE document_id = 'doc-2'")
    then.execute(DEAD_OF_THEN, (task("doc-3").key, *columns(task("doc-3"))))
    assert await queue.stats() == QueueStats(1, 1, 1)
    first, second = await queue.receive(limit=10, wait=0)
    assert (first.task, first.attempt, second.task, second.attempt) == (task("doc-1"), 1, task("doc-2"), 2)
    (letter,) = await queue.dead()
    assert (letter.task, letter.reason, letter.attempts) == (task("doc-3"), "the text is blank", 4)
    await queue.finish(first)
    # Programs of then may still send.
    then.execute(TASK_OF_THEN, (task("doc-4").key, task("doc-4").group, *columns(task("doc-4"))))
    assert await tasks_of(queue) == [task("doc-4")]
    assert await queue.revive() == 1
    then.close()


@pytest.mark.parametrize("module", [sql, turns], ids=["sql", "turns"])
def test_sqlite_understands_every_statement(module: ModuleType, tmp_path: Path) -> None:
    connection = connect(tmp_path / FILE_NAME)
    statement = re.compile(r"(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")
    found = [value for value in vars(module).values() if isinstance(value, str) and statement.match(value)]
    for each in found:
        values = dict.fromkeys(("now", *(f"p{number}" for number in range(1, 10))))
        assert connection.execute(f"EXPLAIN {translated(each)}", values).fetchall()
    connection.close()
    assert len(found) >= 5


@pytest.mark.parametrize("statement", [turns.EMBED, turns.ENRICH], ids=["embed", "enrich"])
def test_a_choice_never_reads_the_whole_table_of_tasks(statement: str, tmp_path: Path) -> None:
    connection = connect(tmp_path / FILE_NAME)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {translated(statement)}", {"now": 0, "p1": 1, "p2": "[]"}).fetchall()
    steps = [row[3] for row in plan]
    assert any(step.startswith("SEARCH task USING INTEGER PRIMARY KEY") for step in steps)
    whole = [step for step in steps if re.match(r"SCAN (?:task|ready|other)\b", step)]
    # These two use an index of few rows: the first waiting workspace, and the tasks in hand.
    assert all("INDEX task_by_turn" in step or "INDEX task_in_hand" in step for step in whole), steps
    connection.close()
