"""The queue of the embedded default: one SQLite file that several processes fill and one worker empties."""

# ruff: noqa: S608 - statements are put together from names in this module, values are bound

import asyncio
import logging
import os
import sqlite3
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from typing_extensions import override

from cragside.databases.private_files import FILE_MODE, make_file, make_folder, tighten
from cragside.databases.sqlite_files import Log, is_damage, unusable, without_paths
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Stage, Task
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.index_queue import DeadLetter, Delivery, IndexQueue, QueueStats

SCHEMA_VERSION = 2
BUSY_SECONDS = 5.0
LONGEST_LOG_BYTES = 1_000_000
# The files of the queue, its worker and the settings in RAG_HOME.
_OURS = (".queue.sqlite3*", ".worker.lock", ".settings.json*")

# `lease` is the end of the lease, NULL for a waiting task. `deaths` counts the workers that died with the task.
_SCHEMA = """
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
"""


class QueueFormatError(Exception):
    """The file is not a queue of this version."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the queue's file. Create it if it is missing.

    With WAL and `synchronous=NORMAL`, a killed process loses nothing that was committed. A power cut may lose the last
    commits; the worker's sweep restores them.
    """
    make_folder(path.parent)
    with suppress(FileExistsError):
        make_file(path)
    # SQLite gives its auxiliary files the permissions of the main file.
    tighten(*(found for ours in _OURS for found in path.parent.glob(ours)))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
    try:
        # The file shrinks when tasks are deleted: the queue's small transactions can afford it. This has to come first.
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {LONGEST_LOG_BYTES}")
        _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made the tables meanwhile.
        if _version(connection) == 0:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    if (version := _version(connection)) != SCHEMA_VERSION:
        raise QueueFormatError(f"it has format {version}, and this version of cragside reads format {SCHEMA_VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


Result = TypeVar("Result")

_log = logging.getLogger("cragside")


class QueueFile:
    """Runs SQL on the file at `path`, one transaction at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._using = threading.Lock()

    async def write(self, work: Callable[[sqlite3.Connection], Result], **default: Result) -> Result:
        """Run `work` as one transaction. Without a file return `default`; without a `default` create the file."""
        return await asyncio.to_thread(lambda: self._run(work, "BEGIN IMMEDIATE", **default))

    async def execute(self, sql: str, *values: Any) -> None:
        """Run one statement. Without a file, do nothing."""
        await self.write(lambda connection: connection.execute(sql, values), default=None)

    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of a query; without a file, none."""
        return await asyncio.to_thread(
            self._run, lambda connection: connection.execute(sql, values).fetchall(), "", default=[]
        )

    def close(self) -> None:
        """Close the connection. The next use opens another one."""
        with self._using:
            if self._connection is not None:
                self._discard_broken_log()
                self._connection.close()
                self._connection = None

    def _discard_broken_log(self) -> None:
        with closing(Log(self._path)) as log:
            if log.discard_if_broken():
                _log.warning("Somebody changed %s-wal. The worker's sweep restores its tasks.", self._path.name)

    def _run(self, work: Callable[[sqlite3.Connection], Result], begin: str, **default: Result) -> Result:
        with self._using, self._failures_translated():
            self._discard_broken_log()
            if self._connection is None:
                if default and not os.path.lexists(self._path):
                    return default["default"]
                self._connection = connect(self._path)
            with self._connection as connection:  # commits, or rolls back after an exception
                if begin:
                    connection.execute(begin)
                return work(connection)

    @contextmanager
    def _failures_translated(self) -> Iterator[None]:
        try:
            yield
        except QueueFormatError as error:
            raise self._unavailable(f"cannot be used: {error}.") from error
        except sqlite3.DatabaseError as error:
            reason = f"{unusable(error)}."
            if is_damage(error):
                remedy = "Move it away: the next worker rebuilds it from the documents."
                reason = f"is damaged ({without_paths(error)}). {remedy}"
            raise self._unavailable(reason) from error
        except OSError as error:
            raise self._unavailable(f"cannot be used: {error.strerror}. Check RAG_HOME.") from error

    def _unavailable(self, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable("queue", f"{self._path.name} in RAG_HOME {reason}").at(self._path)


TASK = "workspace, document_id, content_hash, part, stage"
# A task that this many workers died with is handed out alone. From then on, each death counts as an attempt.
DEATHS_TOLERATED = 3
_MOST_REMEMBERED = 10_000
# A task may be handed out if it is due and no task of its group is in hand.
_READY = (
    f"SELECT id, attempts, {TASK} FROM task WHERE workspace = ? AND stage = ? AND lease IS NULL AND due <= ? "
    "AND grp NOT IN (SELECT grp FROM task WHERE lease IS NOT NULL)"
)
_EMBEDDED = (
    " AND NOT EXISTS (SELECT 1 FROM task AS other WHERE other.workspace = task.workspace"
    " AND other.document_id = task.document_id AND other.stage = 'embed')"
)
_OLDEST_FIRST = " ORDER BY id LIMIT ?"
_READY_IN = {"embed": _READY + _OLDEST_FIRST, "enrich": _READY + _EMBEDDED + _OLDEST_FIRST}

Turn = tuple[int, Any]  # how many tasks the workspace had taken before, and the row of the task


class QueueTurns:
    """Chooses tasks so that workspaces take turns and text becomes searchable soon.

    The workspace with the fewest tasks in hand is next, then the one whose last turn was longest ago. `embed` goes
    before `enrich`, and `enrich` leaves places free for text that arrives meanwhile. But no workspace waits until all
    text of another one is embedded. A document is embedded before it is annotated.
    """

    def __init__(self) -> None:
        self._last_turns: dict[str, int] = {}  # by workspace; the latest is at the end
        self._turns = 0

    def next_tasks(self, connection: sqlite3.Connection, limit: int, now: float) -> list[Any]:
        """Return the rows of at most `limit` tasks to hand out: id, attempts, and the columns of `TASK`."""
        in_hand, suspects_in_hand = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE deaths >= ?) FROM task WHERE lease IS NOT NULL",
            (DEATHS_TOLERATED,),
        ).fetchone()
        if suspects_in_hand:
            return []
        suspect = connection.execute(
            f"SELECT id, attempts, {TASK} FROM task WHERE deaths >= ? AND due <= ? ORDER BY due LIMIT 1",
            (DEATHS_TOLERATED, now),
        ).fetchall()
        if suspect:
            return [] if in_hand else suspect
        chosen = self._both_stages(connection, limit, now, in_hand > 0)
        for _, row in chosen:
            self._last_turns.pop(row[2], None)
            self._turns += 1
            self._last_turns[row[2]] = self._turns
        while len(self._last_turns) > _MOST_REMEMBERED:
            del self._last_turns[next(iter(self._last_turns))]
        return [row for _, row in chosen]

    def _both_stages(self, connection: sqlite3.Connection, limit: int, now: float, busy: bool) -> list[Turn]:
        taken = self._taken(connection)
        embeds = self._in_turn(connection, "embed", limit, now, taken)
        if len(embeds) < limit:
            # Half of the free places stay free for text that arrives while models are at work.
            room = min(limit - len(embeds), max(limit // 2, 0 if busy or embeds else 1))
            return embeds + self._in_turn(connection, "enrich", room, now, taken)
        # No workspace gets a second task before another one gets its first.
        first, later = [turn for turn in embeds if not turn[0]], [turn for turn in embeds if turn[0]]
        annotating = [turn for turn in self._in_turn(connection, "enrich", len(later), now, taken) if not turn[0]]
        return first + annotating + later[: len(later) - len(annotating)]

    def _taken(self, connection: sqlite3.Connection) -> Counter[str]:
        """Count the tasks that each workspace has in hand, plus one for the workspace that had the last turn."""
        sql = "SELECT workspace, count(*) FROM task WHERE lease IS NOT NULL GROUP BY workspace"
        taken = Counter[str](dict(connection.execute(sql).fetchall()))
        if self._last_turns:
            taken[next(reversed(self._last_turns))] += 1
        return taken

    def _in_turn(
        self, connection: sqlite3.Connection, stage: Stage, limit: int, now: float, taken: Counter[str]
    ) -> list[Turn]:
        """Return at most `limit` tasks of a stage, in turns, each workspace's oldest first, and add them to `taken`."""
        if limit <= 0:
            return []
        lines = [(taken[name], self._last_turns.get(name, 0), name) for name in _waiting_workspaces(connection)]
        heapify(lines)
        rows: dict[str, Iterator[Any]] = {}
        turns: list[Turn] = []
        while lines and len(turns) < limit:
            count, last_turn, name = lines[0]
            if name not in rows:
                rows[name] = iter(connection.execute(_READY_IN[stage], (name, stage, now, limit)).fetchall())
            if (row := next(rows[name], None)) is None:
                heappop(lines)
                continue
            turns.append((count, row))
            taken[name] += 1
            heapreplace(lines, (count + 1, last_turn, name))
        return turns


def _waiting_workspaces(connection: sqlite3.Connection) -> Iterator[str]:
    """Return the workspaces with waiting tasks. Each takes one step in an index, however many tasks it has."""
    name = ""
    sql = "SELECT workspace FROM task WHERE workspace > ? AND lease IS NULL ORDER BY workspace LIMIT 1"
    while row := connection.execute(sql, (name,)).fetchone():
        name = row[0]
        yield name


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
