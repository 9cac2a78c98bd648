"""The files of an open SQLite database: commits get into its main file at once, and what others do to them is found."""

import os
import sqlite3
import struct
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from cragside.adapters.sqlite_failures import without_paths

# A file in use, and what SQLite keeps beside it. Processes that open it anew could not see each other without them.
_ENDS = ("", "-wal", "-shm")
# The format of a log's head: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
_HEAD = struct.Struct(">8I")
_MAGIC = 0x377F0682
# Readers of an older state keep commits in the log; they are asked again so often.
_TRIES, _PAUSE_SECONDS = 40, 0.05
_PATIENCE_SECONDS = 1.0

FileId = tuple[int, int]


class FilesLost(Exception):
    """Somebody removed or changed the database's files: what is written from now on would be lost. Says how."""


class FileCut(Exception):
    """Somebody cut the database's main file. Says what SQLite finds."""


@dataclass(frozen=True, slots=True)
class _Log:
    """A log's length, and the salt that each of its generations has anew; 0 without a sound head."""

    size: int = 0
    salt: int = 0


class OpenFiles:
    """Watches over the files of `connection`, which is in WAL mode and stays its owner's.

    SQLite keeps what was committed in a log beside the main file, and remembers elsewhere how much that is: it goes on
    writing behind the end of a log that somebody cut, and the next start finds nothing. So each commit is copied into
    the main file at once, on a thread of its own. A log that is cut then holds nothing that is missing elsewhere, and
    is begun anew.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        *,
        connect: Callable[[], sqlite3.Connection],
        longest_log: int,
    ) -> None:
        self._path = path
        self._connection = connection
        self._connect = connect
        self._longest_log = longest_log
        self._copying = connect()
        try:
            self._settled = _copied(self._copying)
            self._ids = self._ids_now()
            self._log, self._length = self._log_now(), path.stat().st_size
        except BaseException:
            self._copying.close()
            raise
        self._lost = ""
        self._state = threading.Condition()
        self._wanted = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Raise `FilesLost` or `FileCut` unless what is committed next will be found again. Begin a cut log anew."""
        if self._lost:
            raise FilesLost(self._lost)
        self._check_length()
        if removed := self._removed():
            if os.path.lexists(self._path) and not os.path.lexists(self._with("-wal")):
                # What was accepted before gets into the file, unless another process may have opened it meanwhile.
                with suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raise FilesLost(f"somebody removed {removed}")
        log = self._log_now()
        if self._is_cut(log):
            self._begin_anew(log)
            log = self._log_now()
        self._log = log

    def committed(self) -> None:
        """Copy what was committed into the main file soon. Raises as `check` does."""
        with self._state:
            self._settled, self._wanted = False, True
            if self._thread is None:
                self._thread = threading.Thread(target=self._copy, name="checkpoint", daemon=True)
                self._thread.start()
        self.check()

    def wait(self) -> None:
        """Wait until all that was committed is in the main file, or readers have kept it in the log for a second.

        Raises as `check` does.
        """
        with self._state:
            self._state.wait_for(lambda: self._settled or self._thread is None, _PATIENCE_SECONDS)
            if self._settled:
                return
        self.check()

    def close(self) -> None:
        """Wait for a copy that is under way. The owner closes its own connection afterwards."""
        self._closing.set()
        if (thread := self._thread) is not None:
            thread.join()
        self._copying.close()

    def _copy(self) -> None:
        tries = 0
        while True:
            with self._state:
                tries = 0 if self._wanted else tries + 1
                self._wanted = False
                if self._settled or tries > _TRIES or (tries and self._closing.is_set()):
                    self._thread = None
                    self._state.notify_all()
                    return
            # SQLite would copy zeros that somebody wrote over commits. In an empty log it finds nothing to copy.
            log = self._log_now()
            done = not (log.size and self._is_cut(log)) and _copied(self._copying)
            with self._state:
                self._settled = done and not self._wanted
                self._state.notify_all()
            if not done:
                self._closing.wait(_PAUSE_SECONDS)

    def _begin_anew(self, log: _Log) -> None:
        name = f"{self._path.name}-wal"
        try:
            left = not self._settled if log.size else _left(self._copying)
        except sqlite3.Error:
            left = 1
        # A commit that is not in the main file may still be in the rest of the log, for the next start to find.
        if left > 0:
            self._lost = f"somebody cut or changed {name}"
            raise FilesLost(self._lost)
        # Another process may have begun it anew. Then this does nothing, after a wait for whoever writes.
        busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy and self._is_cut(self._log_now()):
            raise FilesLost(f"somebody changed {name}, and it is being read")

    def _is_cut(self, log: _Log) -> bool:
        """Whether a log is not the known one or one that SQLite has begun since."""
        if not log.salt:
            return log.size > 0 or self._log.size > 0
        # The first commit of a generation cuts a log that was longer than it may be.
        return log.salt == self._log.salt and log.size < min(self._log.size, self._longest_log)

    def _check_length(self) -> None:
        length = self._path.stat().st_size if self._path.exists() else self._length
        if not length:
            # SQLite would take it for a new database, and find nothing wrong with it.
            raise FileCut("its file is empty")
        if length < self._length and length < self._number("page_count") * self._number("page_size"):
            # This connection has pages in memory that the file lacks.
            with closing(self._connect()) as anew:
                try:
                    complaint = str(anew.execute("PRAGMA quick_check(1)").fetchone()[0])
                except sqlite3.Error as error:
                    raise FileCut(without_paths(error)) from error
            if complaint != "ok":
                raise FileCut(" ".join(complaint.split()))
        self._length = length

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _removed(self) -> str:
        triples = zip(_ENDS, self._ids, self._ids_now(), strict=True)
        return " and ".join(f"{self._path.name}{end}" for end, then, now in triples if then != now)

    def _ids_now(self) -> tuple[FileId | None, ...]:
        return tuple(file_id(self._with(end)) for end in _ENDS)

    def _with(self, end: str) -> Path:
        return self._path.with_name(f"{self._path.name}{end}")

    def _log_now(self) -> _Log:
        try:
            # Nobody locks the log. To close one of the two other files would end SQLite's locks on it.
            with self._with("-wal").open("rb") as log:
                return _Log(os.fstat(log.fileno()).st_size, _salt(log.read(_HEAD.size)))
        except OSError:
            return _Log()


def file_id(path: Path) -> FileId | None:
    """Tell files apart that have the same path one after the other; None when there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _left(connection: sqlite3.Connection) -> int:
    """Copy the log into the main file, and count what is left in it; -1 while somebody else copies it."""
    busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return -1 if busy else int(frames - copied)


def _copied(connection: sqlite3.Connection) -> bool:
    """Copy the log into the main file, and tell whether all of it is there."""
    try:
        return _left(connection) == 0
    except sqlite3.Error:
        return False


def _salt(head: bytes) -> int:
    """The salt of a log's head, 0 if the head is not sound."""
    if len(head) < _HEAD.size:
        return 0
    magic, *_, salt, other, first, second = _HEAD.unpack(head)
    if magic & ~1 != _MAGIC:
        return 0
    words = struct.unpack(f"{'>' if magic & 1 else '<'}6I", head[:24])
    one = two = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return (salt << 32 | other) if (one, two) == (first, second) else 0
