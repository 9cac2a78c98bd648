"""The queue of the embedded default: one SQLite file that several processes fill and one worker empties."""

import asyncio
import logging
import os
import re
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout
from typing_extensions import override

from cragside.databases.private_files import FILE_MODE, make_file, make_folder, tighten
from cragside.databases.sqlite_files import Log, is_damage, unusable, without_paths
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.task_messages import TaskMessages
from cragside.store.queues.driver import QueueDriver, Result, Statements
from cragside.store.queues.sql import TaskQueue

SCHEMA_VERSION = 2
BUSY_SECONDS = 5.0
LONGEST_LOG_BYTES = 1_000_000
# The files of the queue, its worker and the settings in RAG_HOME.
_OURS = (".queue.sqlite3*", ".worker.lock", ".settings.json*")

# As `crag.task` and `crag.dead_task` in PostgreSQL. Times are seconds.
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
# Files of earlier versions lack these. Those versions go on with a file that has them.
_ADDED = """
ALTER TABLE task ADD COLUMN holder TEXT;
CREATE INDEX task_suspect ON task (due) WHERE deaths > 0;
CREATE TABLE queue_turn (workspace TEXT PRIMARY KEY, number INTEGER NOT NULL);
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
    if _version(connection) == 0 or _lacks_turns(connection):
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made the tables meanwhile.
        if _version(connection) == 0:
            _run_all(connection, _SCHEMA)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        if _lacks_turns(connection):
            _run_all(connection, _ADDED)
        connection.execute("COMMIT")
    if (version := _version(connection)) != SCHEMA_VERSION:
        raise QueueFormatError(f"it has format {version}, and this version of cragside reads format {SCHEMA_VERSION}")


def _lacks_turns(connection: sqlite3.Connection) -> bool:
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'queue_turn'").fetchone()
    return _version(connection) == SCHEMA_VERSION and there is None


def _run_all(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        connection.execute(statement)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


_log = logging.getLogger("cragside")

# The words of a statement that are others in SQLite. A list is JSON, and the time is a parameter.
_WORDS = (
    ("crag.dead_task", "dead"),
    ("crag.", ""),
    ("clock_timestamp()", ":now"),
    ("make_interval(secs => ", "("),
    ("least(", "min("),
    ("= ANY(ARRAY(", "IN (SELECT * FROM ("),
    ("::integer", ""),
)
_LIST, _NUMBER = re.compile(r"= ANY\((\$\d)\)"), re.compile(r"\$(\d)")


@lru_cache(maxsize=100)
def translated(sql: str) -> str:
    """Return a statement of PostgreSQL in SQLite's words. Its parameters have the names `p1`, `p2` ... and `now`."""
    for word, other in _WORDS:
        sql = sql.replace(word, other)
    return _NUMBER.sub(r":p\1", _LIST.sub(r"IN (SELECT value FROM json_each(\1))", sql))


class _FileStatements:
    """Runs statements on a connection. No coroutine here suspends."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._now = clock.time()

    async def all(self, sql: str, *values: Any) -> list[Any]:
        return self._connection.execute(translated(sql), self._named(values)).fetchall()

    async def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(translated(sql), map(self._named, rows))

    def _named(self, values: Sequence[Any]) -> dict[str, Any]:
        given = (orjson.dumps(value).decode() if isinstance(value, list) else value for value in values)
        return {"now": self._now, **{f"p{number}": value for number, value in enumerate(given, start=1)}}


def _ended(work: Awaitable[Result]) -> Result:
    """Return the result of a coroutine that never suspends."""
    try:
        next(work.__await__())
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("A statement on SQLite waits for something.")


class QueueFile:
    """Runs SQL on the file at `path`, one transaction at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._using = threading.Lock()

    def run(self, work: Callable[[sqlite3.Connection], Result], begin: str, **default: Result) -> Result:
        """Run `work` as one transaction. Without a file return `default`; without a `default` create the file."""
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


# Leading dots: no workspace can have these names.
FILE_NAME = ".queue.sqlite3"
LOCK_NAME = ".worker.lock"


class FileDriver(QueueDriver):
    """Runs the queue's statements on `folder/.queue.sqlite3`. Writing creates the file; reading does not.

    One process at a time receives: the one that holds `folder/.worker.lock`. A killed process loses the lock, so
    whatever is in the hands of others is in no hands at all.
    """

    pauses = 0.02, 0.25

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock = clock
        self._file = QueueFile(folder / FILE_NAME)
        self._lock = FileLock(folder / LOCK_NAME, timeout=0, thread_local=False, mode=FILE_MODE)

    @override
    async def rows(self, sql: str, *values: Any) -> list[Any]:
        return await asyncio.to_thread(self._run, lambda statements: statements.all(sql, *values), "", default=[])

    @override
    async def write(self, work: Callable[[Statements], Awaitable[Result]], **default: Result) -> Result:
        return await asyncio.to_thread(lambda: self._run(work, "BEGIN IMMEDIATE", **default))

    @override
    async def chooses_alone(self, statements: Statements) -> bool:
        return True  # there is one writer at a time

    @override
    async def may_receive(self) -> bool:
        return self._lock.is_locked or await asyncio.to_thread(self._lead)

    @override
    def leads(self) -> bool:
        return self._lock.is_locked

    @override
    def is_gone(self, holder: str) -> bool:
        return True

    @override
    async def close(self) -> None:
        await asyncio.to_thread(self._file.close)
        self._lock.release(force=True)

    def _run(self, work: Callable[[Statements], Awaitable[Result]], begin: str, **default: Result) -> Result:
        return self._file.run(lambda each: _ended(work(_FileStatements(each, self.clock))), begin, **default)

    def _lead(self) -> bool:
        self._file.run(lambda _: None, "")  # makes the folder, which is private
        try:
            self._lock.acquire()
        except Timeout:
            return False
        return True


def local_queue(
    folder: Path, *, messages: TaskMessages | None = None, lease_seconds: float = 60.0, clock: Clock = SYSTEM_CLOCK
) -> TaskQueue:
    """Open the queue in a file of `folder`, for one worker at a time."""
    return TaskQueue(FileDriver(folder, clock), messages=messages, lease_seconds=lease_seconds, clock=clock)
