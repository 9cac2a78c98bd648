"""The queue of the embedded default: one SQLite file that several processes fill and one worker empties."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import asyncio
import os
import sqlite3
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from cragside.adapters.local.queue_schema import QueueFormatError, connect
from cragside.adapters.private_files import FILE_MODE
from cragside.adapters.sqlite_failures import is_damage, told, unusable
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.index_queue import DeadLetter, Delivery, IndexQueue, QueueStats

# Leading dots: no workspace can have these names.
FILE_NAME = ".queue.sqlite3"
LOCK_NAME = ".worker.lock"
# After so many workers that ended with it in hand a task is handed out alone, and each further one counts as a try.
DEATHS_TOLERATED = 3
# Of so many workspaces it is known which had its turn when.
_MOST_REMEMBERED = 10_000
_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.02, 0.25
_TASK = "workspace, document_id, content_hash, part, stage"

Result = TypeVar("Result")


class LocalQueue(IndexQueue):
    """Tasks in `folder/.queue.sqlite3`. The file is made by the first `send` or `receive`, not by asking.

    One process at a time is handed tasks: the one that holds `folder/.worker.lock`, taken by its first `receive`. A
    killed process loses the lock, and whoever takes it next gets what the dead one had in hand, at once. A task that
    waits for its retry lets later ones of its group pass. Workspaces take turns: the one with the fewest tasks in hand
    is next. Embedding goes before enriching, that of the same document always, and enriching leaves room, so that new
    text is found soon; but no workspace waits until all of another one's text is embedded.
    """

    def __init__(self, folder: Path, *, lease_seconds: float = 60.0, clock: Callable[[], float] = time.time) -> None:
        self._path = folder / FILE_NAME
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._lock = FileLock(folder / LOCK_NAME, timeout=0, thread_local=False, mode=FILE_MODE)
        self._connection: sqlite3.Connection | None = None
        self._using = threading.Lock()
        self._settled = asyncio.Event()
        # Workspaces that had a turn, the last one at the end.
        self._served: dict[str, int] = {}
        self._turns = 0

    async def send(self, tasks: Sequence[Task]) -> None:
        """Add tasks that do not wait already, all or none; a dead letter that equals one is replaced by it."""
        if tasks:
            await self._do(lambda connection: self._send(connection, tasks))

    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        """See the port. A process that does not hold the worker's lock gets nothing while another does."""
        ends, pause = time.monotonic() + wait, _POLL_SECONDS
        while True:
            if deliveries := await self._do(lambda connection: self._receive(connection, limit)):
                return deliveries
            if (left := ends - time.monotonic()) <= 0:
                return []
            # What is settled here may let others of its group pass; what other processes send has to be asked for.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), min(pause, left))
            self._settled.clear()
            pause = min(pause * 2, _LONGEST_POLL_SECONDS)

    async def extend(self, delivery: Delivery) -> None:
        """Renew the lease."""
        lease = self._clock() + self._lease_seconds
        await self._execute("UPDATE task SET lease = ? WHERE id = ? AND token = ?", lease, *delivery.receipt)

    async def finish(self, delivery: Delivery) -> None:
        """Forget the task; nothing happens when it is no longer this delivery's."""
        await self._execute("DELETE FROM task WHERE id = ? AND token = ?", *delivery.receipt)
        self._settled.set()

    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        """Let the task come again."""
        await self._give_back(delivery, delay, counted=True)

    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        """Let the task come again as if it had not come."""
        await self._give_back(delivery, delay, counted=False)

    async def _give_back(self, delivery: Delivery, delay: float, *, counted: bool) -> None:
        await self._execute(
            "UPDATE task SET lease = NULL, token = NULL, attempts = attempts + ?, due = ? WHERE id = ? AND token = ?",
            int(counted),
            self._clock() + delay,
            *delivery.receipt,
        )
        self._settled.set()

    async def bury(self, delivery: Delivery, reason: str) -> None:
        """Make a dead letter of the task."""
        await self._do(lambda connection: self._bury(connection, delivery, reason))
        self._settled.set()

    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Dead letters, latest first."""
        where, values = _where(workspace=workspace)
        sql = f"SELECT id, reason, attempts, at, {_TASK} FROM dead {where} ORDER BY id DESC LIMIT ?"
        rows = await self._ask(sql, *values, limit)
        return [DeadLetter(str(row[0]), Task(*row[4:]), *row[1:4]) for row in rows]

    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        """Put dead letters back."""
        where, values = _where(workspace=workspace, document_id=document_id)

        def revive(connection: sqlite3.Connection) -> int:
            rows = connection.execute(f"DELETE FROM dead {where} RETURNING {_TASK}", values).fetchall()
            self._send(connection, [Task(*row) for row in rows])
            return len(rows)

        return await self._do(revive, default=0)

    async def discard(self, *, workspace: str, document_id: str) -> None:
        """Forget a document's tasks, those in hand as well, and its dead letters."""

        def discard(connection: sqlite3.Connection) -> None:
            for table in ("task", "dead"):
                connection.execute(
                    f"DELETE FROM {table} WHERE workspace = ? AND document_id = ?", (workspace, document_id)
                )

        await self._do(discard, default=None)

    def leads(self) -> bool:
        """Whether this process holds the worker's lock."""
        return self._lock.is_locked

    async def stats(self) -> QueueStats:
        """How much there is, exactly."""
        return await self._stats()

    async def stats_of(self, workspace: str) -> QueueStats:
        """How much there is of a workspace, exactly."""
        return await self._stats(workspace)

    async def _stats(self, workspace: str | None = None) -> QueueStats:
        where, values = _where(workspace=workspace)
        waiting = f"SELECT count(*) - count(lease), count(lease), (SELECT count(*) FROM dead {where}) FROM task {where}"
        rows = await self._ask(waiting, *values, *values)
        return QueueStats(*rows[0]) if rows else QueueStats(0, 0, 0)

    async def close(self) -> None:
        """Give back what is in hand, uncounted, and let the next worker begin."""
        if self._lock.is_locked:
            await self._execute("UPDATE task SET lease = NULL, token = NULL WHERE lease IS NOT NULL")
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._using:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        self._lock.release(force=True)

    async def _execute(self, sql: str, *values: Any) -> None:
        await self._do(lambda connection: connection.execute(sql, values), default=None)

    async def _ask(self, sql: str, *values: Any) -> list[Any]:
        return await self._do(lambda connection: connection.execute(sql, values).fetchall(), writing=False, default=[])

    async def _do(
        self, work: Callable[[sqlite3.Connection], Result], *, writing: bool = True, **default: Result
    ) -> Result:
        """Run work as one transaction in a thread; with a `default` that is the answer while there is no file."""
        return await asyncio.to_thread(lambda: self._done(work, writing, **default))

    def _done(self, work: Callable[[sqlite3.Connection], Result], writing: bool, **default: Result) -> Result:
        with self._using, _translated(self._path):
            if self._connection is None:
                if default and not os.path.lexists(self._path):
                    return default["default"]
                self._connection = connect(self._path)
            with _transaction(self._connection) if writing else nullcontext():
                return work(self._connection)

    def _send(self, connection: sqlite3.Connection, tasks: Iterable[Task]) -> None:
        now = self._clock()
        for task in tasks:
            row = (task.key, task.group, *_row(task), now)
            connection.execute("DELETE FROM dead WHERE key = ?", (task.key,))
            connection.execute(
                f"INSERT INTO task (key, grp, {_TASK}, due) SELECT ?, ?, ?, ?, ?, ?, ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM task WHERE key = ? AND lease IS NULL)",
                (*row, task.key),
            )

    def _bury(self, connection: sqlite3.Connection, delivery: Delivery, reason: str) -> None:
        gone = connection.execute("DELETE FROM task WHERE id = ? AND token = ? RETURNING 1", delivery.receipt)
        if not gone.fetchall():
            return
        task, at = delivery.task, datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
        connection.execute(
            f"INSERT OR REPLACE INTO dead (key, {_TASK}, reason, attempts, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (task.key, *_row(task), reason, delivery.attempt, at),
        )

    def _receive(self, connection: sqlite3.Connection, limit: int) -> list[Delivery]:
        if not self._is_worker(connection):
            return []
        now = self._clock()
        connection.execute(
            "UPDATE task SET lease = NULL, token = NULL, attempts = attempts + 1 WHERE lease <= ?", (now,)
        )
        return [
            Delivery(Task(*row[2:]), row[1] + 1, (row[0], _leased(connection, row[0], now + self._lease_seconds)))
            for row in self._chosen(connection, limit, now)
        ]

    def _is_worker(self, connection: sqlite3.Connection) -> bool:
        if self._lock.is_locked:
            return True
        try:
            self._lock.acquire()
        except Timeout:
            return False
        # A worker with many tasks in hand dies of one of them, or of none: no task is to blame until it was alone.
        connection.execute(
            "UPDATE task SET lease = NULL, token = NULL, deaths = deaths + 1, attempts = attempts + (deaths >= ?), "
            "due = CASE WHEN deaths >= ? THEN ? + min(60, 1 << attempts) ELSE due END WHERE lease IS NOT NULL",
            (DEATHS_TOLERATED, DEATHS_TOLERATED, self._clock()),
        )
        return True

    def _chosen(self, connection: sqlite3.Connection, limit: int, now: float) -> list[Any]:
        """Rows of the tasks to hand out: id, attempts, and the task."""
        in_hand, suspects = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE deaths >= ?) FROM task WHERE lease IS NOT NULL",
            (DEATHS_TOLERATED,),
        ).fetchone()
        if suspects:
            return []
        suspect = connection.execute(
            f"SELECT id, attempts, {_TASK} FROM task WHERE deaths >= ? AND due <= ? ORDER BY due LIMIT 1",
            (DEATHS_TOLERATED, now),
        ).fetchall()
        if suspect:
            return [] if in_hand else suspect
        taken = self._taken(connection)
        embeds = self._in_turn(connection, "embed", limit, now, taken)
        if len(embeds) < limit:
            # Half of what is free, so that a free place is left for text that comes while models are at work.
            room = min(limit - len(embeds), max(limit // 2, 0 if in_hand or embeds else 1))
            chosen = embeds + self._in_turn(connection, "enrich", room, now, taken)
        else:
            # Nobody's second task goes before somebody else's first.
            first, later = [turn for turn in embeds if not turn[0]], [turn for turn in embeds if turn[0]]
            enriching = [turn for turn in self._in_turn(connection, "enrich", len(later), now, taken) if not turn[0]]
            chosen = first + enriching + later[: len(later) - len(enriching)]
        for _, row in chosen:
            self._served.pop(row[2], None)
            self._turns += 1
            self._served[row[2]] = self._turns
        while len(self._served) > _MOST_REMEMBERED:
            del self._served[next(iter(self._served))]
        return [row for _, row in chosen]

    def _taken(self, connection: sqlite3.Connection) -> Counter[str]:
        """How many tasks each workspace has in hand. The last one that had a turn counts as if it had one more."""
        sql = "SELECT workspace, count(*) FROM task WHERE lease IS NOT NULL GROUP BY workspace"
        taken = Counter[str](dict(connection.execute(sql).fetchall()))
        if self._served:
            taken[next(reversed(self._served))] += 1
        return taken

    def _in_turn(
        self, connection: sqlite3.Connection, stage: str, limit: int, now: float, taken: Counter[str]
    ) -> list[tuple[int, Any]]:
        """Tasks that may be handed out, a workspace's oldest first, each with what the workspace had `taken` before.

        Next is always the workspace that has taken the fewest, then the one whose last turn was longest ago.
        """
        if limit <= 0:
            return []
        sql = (
            f"SELECT id, attempts, {_TASK} FROM task WHERE workspace = ? AND stage = ? AND lease IS NULL AND due <= ? "
            "AND grp NOT IN (SELECT grp FROM task WHERE lease IS NOT NULL)"
        )
        if stage == "enrich":
            sql += (
                " AND NOT EXISTS (SELECT 1 FROM task AS other WHERE other.workspace = task.workspace"
                " AND other.document_id = task.document_id AND other.stage = 'embed')"
            )
        sql += " ORDER BY id LIMIT ?"
        lines = [(taken[name], self._served.get(name, 0), name) for name in _workspaces(connection)]
        heapify(lines)
        rows: dict[str, Iterator[Any]] = {}
        turns: list[tuple[int, Any]] = []
        while lines and len(turns) < limit:
            count, served, name = lines[0]
            if name not in rows:
                rows[name] = iter(connection.execute(sql, (name, stage, now, limit)).fetchall())
            if (row := next(rows[name], None)) is None:
                heappop(lines)
                continue
            turns.append((count, row))
            taken[name] += 1
            heapreplace(lines, (count + 1, served, name))
        return turns


def _workspaces(connection: sqlite3.Connection) -> Iterator[str]:
    """Those with tasks that wait, each found with one step in an index."""
    name = ""
    sql = "SELECT workspace FROM task WHERE workspace > ? AND lease IS NULL ORDER BY workspace LIMIT 1"
    while row := connection.execute(sql, (name,)).fetchone():
        name = row[0]
        yield name


def _leased(connection: sqlite3.Connection, row: int, lease: float) -> str:
    """The token that this delivery is known by: an older one can no longer end the task."""
    token = uuid.uuid4().hex
    connection.execute("UPDATE task SET lease = ?, token = ? WHERE id = ?", (lease, token, row))
    return token


def _row(task: Task) -> tuple[str, str, str, int, str]:
    return task.workspace, task.document_id, task.content_hash, task.part, task.stage


def _where(**wanted: str | None) -> tuple[str, list[str]]:
    given = {name: value for name, value in wanted.items() if value is not None}
    return ("WHERE " + " AND ".join(f"{name} = ?" for name in given) if given else ""), list(given.values())


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except QueueFormatError as error:
        raise _unusable(path, f"cannot be used: {error}.") from error
    except sqlite3.DatabaseError as error:
        said = f"{unusable(error)}."
        if is_damage(error):
            said = f"is damaged ({told(error)}). Move it away: the next worker makes it anew from the documents."
        raise _unusable(path, said) from error
    except OSError as error:
        raise _unusable(path, f"cannot be used: {error.strerror}. Check RAG_HOME.") from error


def _unusable(path: Path, said: str) -> ServiceUnavailable:
    return ServiceUnavailable("queue", f"{path.name} in RAG_HOME {said}").at(path)
