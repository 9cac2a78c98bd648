"""The queue of the embedded default: one SQLite file that several processes fill and one worker empties."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import asyncio
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from typing_extensions import override

from cragside.adapters.local.queue_file import QueueFile
from cragside.adapters.local.queue_turns import DEATHS_TOLERATED, TASK, QueueTurns
from cragside.adapters.private_files import FILE_MODE
from cragside.domain.indexing import Task
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.index_queue import DeadLetter, Delivery, IndexQueue, QueueStats

# Leading dots: no workspace can have these names.
FILE_NAME = ".queue.sqlite3"
LOCK_NAME = ".worker.lock"
_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.02, 0.25


class LocalQueue(IndexQueue):
    """Tasks in `folder/.queue.sqlite3`. The first `send` or `receive` creates the file; reading does not.

    One process at a time receives tasks: the one that holds `folder/.worker.lock`, which its first `receive` takes. A
    killed process loses the lock, and the next holder gets the tasks of the dead one at once. A task that waits for its
    retry lets later ones of its group pass. `QueueTurns` says which task is next.
    """

    def __init__(self, folder: Path, *, lease_seconds: float = 60.0, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = QueueFile(folder / FILE_NAME)
        self._turns = QueueTurns()
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._lock = FileLock(folder / LOCK_NAME, timeout=0, thread_local=False, mode=FILE_MODE)
        self._settled = asyncio.Event()

    @override
    async def send(self, tasks: Sequence[Task]) -> None:
        if tasks:
            await self._file.write(lambda connection: self._send(connection, tasks))

    @override
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        ends, pause = self._clock.monotonic() + wait, _POLL_SECONDS
        while True:
            if deliveries := await self._file.write(lambda connection: self._receive(connection, limit)):
                return deliveries
            if (left := ends - self._clock.monotonic()) <= 0:
                return []
            # A task that this process settles may let others of its group pass. Tasks of other processes are polled.
            await self._clock.wait_for(self._settled, min(pause, left))
            self._settled.clear()
            pause = min(pause * 2, _LONGEST_POLL_SECONDS)

    @override
    async def extend(self, delivery: Delivery) -> None:
        lease = self._clock.time() + self._lease_seconds
        await self._file.execute("UPDATE task SET lease = ? WHERE id = ? AND token = ?", lease, *delivery.receipt)

    @override
    async def finish(self, delivery: Delivery) -> None:
        await self._file.execute("DELETE FROM task WHERE id = ? AND token = ?", *delivery.receipt)
        self._settled.set()

    @override
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        await self._give_back(delivery, delay, attempts=1)

    @override
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        await self._give_back(delivery, delay, attempts=0)

    async def _give_back(self, delivery: Delivery, delay: float, *, attempts: int) -> None:
        await self._file.execute(
            "UPDATE task SET lease = NULL, token = NULL, attempts = attempts + ?, due = ? WHERE id = ? AND token = ?",
            attempts,
            self._clock.time() + delay,
            *delivery.receipt,
        )
        self._settled.set()

    @override
    async def bury(self, delivery: Delivery, reason: str) -> None:
        await self._file.write(lambda connection: self._bury(connection, delivery, reason))
        self._settled.set()

    @override
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        where, values = _where(workspace=workspace)
        sql = f"SELECT id, reason, attempts, at, {TASK} FROM dead {where} ORDER BY id DESC LIMIT ?"
        rows = await self._file.rows(sql, *values, limit)
        return [DeadLetter(str(row[0]), Task(*row[4:]), *row[1:4]) for row in rows]

    @override
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        where, values = _where(workspace=workspace, document_id=document_id)

        def revive(connection: sqlite3.Connection) -> int:
            rows = connection.execute(f"DELETE FROM dead {where} RETURNING {TASK}", values).fetchall()
            self._send(connection, [Task(*row) for row in rows])
            return len(rows)

        return await self._file.write(revive, default=0)

    @override
    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        where, values = _where(workspace=workspace, document_id=document_id)

        def discard(connection: sqlite3.Connection) -> None:
            connection.execute(f"DELETE FROM task {where}", values)
            connection.execute(f"DELETE FROM dead {where}", values)

        await self._file.write(discard, default=None)

    @override
    def leads(self) -> bool:
        return self._lock.is_locked

    @override
    async def stats(self) -> QueueStats:
        return await self._stats()

    @override
    async def stats_of(self, workspace: str) -> QueueStats:
        return await self._stats(workspace)

    async def _stats(self, workspace: str | None = None) -> QueueStats:
        where, values = _where(workspace=workspace)
        counts = f"SELECT count(*) - count(lease), count(lease), (SELECT count(*) FROM dead {where}) FROM task {where}"
        rows = await self._file.rows(counts, *values, *values)
        return QueueStats(*rows[0]) if rows else QueueStats(0, 0, 0)

    @override
    async def close(self) -> None:
        """Give back the tasks in hand without counting an attempt, and let the next worker begin."""
        if self._lock.is_locked:
            await self._file.execute("UPDATE task SET lease = NULL, token = NULL WHERE lease IS NOT NULL")
        await asyncio.to_thread(self._file.close)
        self._lock.release(force=True)

    def _send(self, connection: sqlite3.Connection, tasks: Iterable[Task]) -> None:
        now = self._clock.time()
        for task in tasks:
            connection.execute("DELETE FROM dead WHERE key = ?", (task.key,))
            connection.execute(
                f"INSERT INTO task (key, grp, {TASK}, due) SELECT ?, ?, ?, ?, ?, ?, ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM task WHERE key = ? AND lease IS NULL)",
                (task.key, task.group, *_row(task), now, task.key),
            )

    def _bury(self, connection: sqlite3.Connection, delivery: Delivery, reason: str) -> None:
        gone = connection.execute("DELETE FROM task WHERE id = ? AND token = ? RETURNING 1", delivery.receipt)
        if not gone.fetchall():
            return
        task, at = delivery.task, self._clock.now().isoformat(timespec="seconds")
        connection.execute(
            f"INSERT OR REPLACE INTO dead (key, {TASK}, reason, attempts, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (task.key, *_row(task), reason, delivery.attempt, at),
        )

    def _receive(self, connection: sqlite3.Connection, limit: int) -> list[Delivery]:
        if not self._is_worker(connection):
            return []
        now = self._clock.time()
        connection.execute(
            "UPDATE task SET lease = NULL, token = NULL, attempts = attempts + 1 WHERE lease <= ?", (now,)
        )
        return [
            Delivery(Task(*row[2:]), row[1] + 1, (row[0], _leased(connection, row[0], now + self._lease_seconds)))
            for row in self._turns.next_tasks(connection, limit, now)
        ]

    def _is_worker(self, connection: sqlite3.Connection) -> bool:
        if self._lock.is_locked:
            return True
        try:
            self._lock.acquire()
        except Timeout:
            return False
        # A worker with many tasks in hand may die of any of them, or of none: none is blamed until it was alone.
        connection.execute(
            "UPDATE task SET lease = NULL, token = NULL, deaths = deaths + 1, attempts = attempts + (deaths >= ?), "
            "due = CASE WHEN deaths >= ? THEN ? + min(60, 1 << attempts) ELSE due END WHERE lease IS NOT NULL",
            (DEATHS_TOLERATED, DEATHS_TOLERATED, self._clock.time()),
        )
        return True


def _leased(connection: sqlite3.Connection, row: int, lease: float) -> str:
    """Lease a task under a new token, so that an older delivery of it can no longer settle it."""
    token = uuid.uuid4().hex
    connection.execute("UPDATE task SET lease = ?, token = ? WHERE id = ?", (lease, token, row))
    return token


def _row(task: Task) -> tuple[str, str, str, int, str]:
    return task.workspace, task.document_id, task.content_hash, task.part, task.stage


def _where(**wanted: str | None) -> tuple[str, list[str]]:
    given = {name: value for name, value in wanted.items() if value is not None}
    return ("WHERE " + " AND ".join(f"{name} = ?" for name in given) if given else ""), list(given.values())
