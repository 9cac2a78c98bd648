"""One SQLite file: the tables of a workspace and the connection that all its storages share."""

import asyncio
import os
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from cragside.databases.private_files import make_folder, tighten_folder
from cragside.databases.sqlite_files import Log, copy_log, is_damage, unusable, without_paths
from cragside.store.errors import REMOVED, LedgerDamaged, LedgerError, StoreRemoved
from cragside.store.sqlite.schema import check_format, make_store, migrate

FILE_NAME = "store.sqlite3"
# How long a write waits for another process's commit; longer work takes a lease.
BUSY_MILLISECONDS = 5_000
# A write-ahead log that a large transaction made longer is cut to this.
LONGEST_LOG_BYTES = 8_000_000
# A store has more pages than this: it is replaced in two steps or more.
_PAGES_BEFORE_CHECK = 16
# What SQLite keeps beside a file in use. Processes that open the store anew could not see each other without them.
_BESIDE = ("-wal", "-shm")
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.002, 0.05
# SQLite's limit on bound parameters is 32,766 since 3.32; a smaller batch keeps statements reusable.
BATCH = 500


def failure_of(error: sqlite3.Error) -> LedgerError:
    """Return the ledger's own exception for a failure of SQLite."""
    return (LedgerDamaged if is_damage(error) else LedgerError)(without_paths(error), unusable(error))


class Database:
    """The shared connection of one store file. Used on one thread, that of the event loop.

    WAL with `synchronous=NORMAL`: a killed process loses nothing that was committed, a power cut at most the last
    commits, and neither leaves a torn file. A file opened with `read_only` is taken for one that nobody changes: there
    are no locks, nothing beside it is made, and neither file nor folder has to be writable.
    """

    _open: ClassVar[dict[Path, "Database"]] = {}

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if not read_only:
            make_folder(path.parent)
            tighten_folder(path.parent)
            make_store(path)
        if path.stat().st_size == 0:
            raise sqlite3.DatabaseError("its file is empty")
        self.path = path
        self.read_only = read_only
        self._file = _identity(path)
        # What SQLite has said of the file that only another file mends; "" for nothing.
        self.damage = ""
        self._users = 0
        self._opened = uuid.uuid4().hex
        self._beside = 0
        # How often this connection wrote rows of each vector storage.
        self.vector_writes = Counter[str]()
        # How many acknowledged writes there were, and how many of them are in the file itself.
        self._acknowledged = self._copied = 0
        self._copying = asyncio.Lock()
        # Whether somebody changed the log since it was opened.
        self._log_changed = False
        if not read_only:
            with closing(Log(path)) as log:
                log.discard_if_broken()
        self._connection = sqlite3.connect(
            f"{path.as_uri()}?{'mode=ro&immutable=1' if read_only else 'mode=rw'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_MILLISECONDS / 1000,
        )
        try:
            if read_only:
                # There may be nowhere to put temporary files.
                self._connection.execute("PRAGMA temp_store = MEMORY")
            else:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.execute(f"PRAGMA journal_size_limit = {LONGEST_LOG_BYTES}")
                migrate(self._connection)
            check_format(self._connection)
            self._connection.create_function("folded", 1, str.casefold, deterministic=True)
            self._logs = self._logs_now()
            self._log = None if read_only else Log(path)
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def acquire(cls, folder: str | Path, *, read_only: bool = False) -> "Database":
        """Return the database of a folder, as whoever acquired it first opened it; each acquire needs its `release`.

        Raises `LedgerError` and `OSError`.
        """
        path = (Path(folder) / FILE_NAME).resolve()
        database = cls._open.get(path)
        if database is None or database.is_removed():
            try:
                database = cls._open[path] = cls(path, read_only=read_only)
            except sqlite3.Error as error:
                raise failure_of(error) from error
        database._users += 1
        return database

    def refuse_lost_log(self) -> None:
        """Raise `LedgerError` if somebody removed or changed SQLite's files beside the store.

        What is written would be lost. All that was accepted before is in the store, or is put into it first, unless
        another process may have opened it meanwhile.
        """
        if self.read_only or self.is_removed():
            return
        removed = [
            f"{FILE_NAME}{end}"
            for end, then, now in zip(_BESIDE, self._logs, self._logs_now(), strict=True)
            if then != now
        ]
        self._discard_broken_log()
        if f"{FILE_NAME}{_BESIDE[0]}" in removed:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if removed:
            raise _lost_log(f"removed {' and '.join(removed)}")
        if self._log_changed:
            raise _lost_log()

    def _discard_broken_log(self) -> None:
        if self._log is not None and self._log.discard_if_broken():
            self._log_changed = True

    def _logs_now(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_identity(self.path.with_name(f"{self.path.name}{end}")) for end in _BESIDE)

    def release(self) -> None:
        """Give the connection back; the last one closes it."""
        self._users -= 1
        if self._users == 0:
            if self._open.get(self.path) is self:
                del self._open[self.path]
            # SQLite copies the log when it closes the file.
            self._discard_broken_log()
            self._connection.close()
            if self._log is not None:
                self._log.close()

    def many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows, in the transaction that is under way."""
        with self._translating():
            self._connection.executemany(sql, rows)

    def all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Return the first row of a query, or None."""
        try:
            return self._connection.execute(sql, parameters).fetchone()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def within(self, sql: str, values: Iterable[Any], before: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield rows of a query with `IN ({})` over any number of values, or of pairs of them for `VALUES {}`.

        `before` are the parameters ahead of the values.
        """
        pending = list(values)
        for start in range(0, len(pending), BATCH):
            batch = pending[start : start + BATCH]
            if isinstance(batch[0], tuple):
                marks, flat = ",".join(["(?, ?)"] * len(batch)), [part for pair in batch for part in pair]
            else:
                marks, flat = ",".join("?" * len(batch)), batch
            yield from self.all(sql.format(marks), [*before, *flat])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything in the block or nothing. Must not be held across an `await`."""
        self.refuse_lost_log()
        with self._translating():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite ends it by itself after some failures.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @property
    def in_transaction(self) -> bool:
        """Return True if a transaction is under way."""
        return self._connection.in_transaction

    async def keep(self) -> None:
        """Have what was written in the file itself, so that nobody who changes the log takes it. Raises `LedgerError`.

        Writes that come together are copied together. Raises `StoreRemoved` if somebody has removed the store.
        """
        self._acknowledged += 1
        mine = self._acknowledged
        async with self._copying:
            if self._copied < mine:
                then = self._acknowledged
                if self.is_removed():
                    raise StoreRemoved
                self.refuse_lost_log()
                with self._translating():
                    await asyncio.to_thread(copy_log, self.path)
                self._copied = then

    @contextmanager
    def note(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction beside the content: this connection's `state` stays."""
        before = self._connection.total_changes
        try:
            with self.transaction() as connection:
                yield connection
        finally:
            self._beside += self._connection.total_changes - before

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> LedgerError:
        self._discard_broken_log()
        if self._log_changed:
            return _lost_log()
        failure = failure_of(error)
        if isinstance(failure, LedgerDamaged):
            self.damage = str(error)
        return failure

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Have the queries in the block see one state, whatever others write. Must not be held across an `await`."""
        if self._connection.in_transaction:
            yield
            return
        with self._translating():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    async def turn(self) -> bool:
        """Wait while another process is writing, at most as long as a write would wait, and leave the event loop free.

        Whoever writes then does so before the next `await`. False if the other process is still writing.
        """
        ends, pause = time.monotonic() + BUSY_MILLISECONDS / 1000, _FIRST_PAUSE_SECONDS
        while not (free := self._free()) and time.monotonic() < ends:
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        return free

    def _free(self) -> bool:
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            # Anything else is for the write itself to tell.
            return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        return True

    def write_at_once(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Write without waiting for anybody: for the event loop of a server. Raises `LedgerError`.

        It is for notes beside the content: this connection's `state` stays.
        """
        before = self._connection.total_changes
        with self._translating():
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                for sql, parameters in statements:
                    self._connection.execute(sql, parameters)
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
                self._beside += self._connection.total_changes - before

    def flush(self) -> None:
        """Have everything that was committed on the disk, so that not even a power cut takes it."""
        self.refuse_lost_log()
        with self._translating():
            self._connection.execute("PRAGMA wal_checkpoint(FULL)")

    def replace_by(self, other: "Database", check: Callable[[sqlite3.Connection], object]) -> None:
        """Take over another database, at once and for every process that reads this one.

        What `check` raises stops it. It reads the old content, when no other process can write any more.
        """
        self.refuse_lost_log()
        old = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)
        checks = [check]

        def check_once(*_: int) -> None:
            if checks:
                checks.pop()(old)

        with self._translating(), closing(old):
            # The first step locks the file. It is not the last one: each table has a page.
            other._connection.backup(self._connection, pages=_PAGES_BEFORE_CHECK, progress=check_once)

    def generation(self) -> str:
        """Changes when the whole content was replaced, or the store removed."""
        return REMOVED if self.is_removed() else str(self.meta("generation"))

    def is_removed(self) -> bool:
        """Return True if the file is no longer at its path, because somebody removed the workspace."""
        return not self.read_only and _identity(self.path) != self._file

    def is_replaced(self, status: os.stat_result) -> bool:
        """Return True if a file with this status is another one than the open one."""
        return (status.st_dev, status.st_ino) != self._file

    def data_version(self) -> int:
        """Changes whenever another connection has written."""
        return int(self.one("PRAGMA data_version")[0])

    def state(self) -> str:
        """Return a token that changes after each write by any connection, and when the store is removed."""
        if self.is_removed():
            return f"{self._opened}-removed"
        return f"{self._opened}-{self.data_version()}-{self._connection.total_changes - self._beside}"

    def meta(self, key: str) -> str | None:
        """Return a fact about the store, such as the embedding model that built it."""
        row = self.one("SELECT value FROM meta WHERE key = ?", (key,))
        return None if row is None else str(row[0])


def _lost_log(what: str = f"changed {FILE_NAME}{_BESIDE[0]}") -> LedgerError:
    why = f"somebody {what} while cragside had the store open. Restart cragside"
    return LedgerError("its log was removed or changed", f"cannot be written: {why}")


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells files apart that have the same path one after the other; None when there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def make_compact(folder: Path) -> None:
    """Leave one file without log, free pages or what only indexing needs; it can be read where nothing can be written.

    Only while nobody has it open. Raises `LedgerError`.
    """
    try:
        with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as connection:
            # The answers of the extraction, kept for indexing again: the largest part of a store beside its vectors.
            connection.execute("DELETE FROM kv WHERE namespace = 'llm_response_cache'")
            connection.execute("DELETE FROM query")
            connection.execute("DELETE FROM embedding")
            connection.execute("DROP TABLE IF EXISTS lease")
            connection.execute("INSERT INTO passage (passage) VALUES ('optimize')")
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
    except sqlite3.Error as error:
        raise failure_of(error) from error


async def rows_apart(database: Database, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
    """Read all rows of a query in a thread on a connection of its own, so that other requests go on meanwhile.

    It sees what was committed. Raises `LedgerError`.
    """
    return await asyncio.to_thread(_rows, database, sql, parameters)


def _rows(database: Database, sql: str, parameters: Sequence[Any]) -> list[Any]:
    uri = f"{database.path.as_uri()}?mode=ro{'&immutable=1' if database.read_only else ''}"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return connection.execute(sql, parameters).fetchall()
    except sqlite3.Error as error:
        raise failure_of(error) from error
