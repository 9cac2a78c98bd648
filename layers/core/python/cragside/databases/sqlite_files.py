"""Tells how a file of SQLite failed, and if somebody changed its write-ahead log (`-wal`), and copies the log.

SQLite trusts the log while a file is open. If somebody cuts or overwrites it meanwhile, SQLite copies what stands there
now into the file, which damages it. The index of the log (`-shm`) says how much of the log is still to be copied, and
the log's salts: https://sqlite.org/walformat.html.
"""

import os
import re
import sqlite3
import struct
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

_PATH = re.compile(r"(?<!\w)(?:[A-Za-z]:)?[/\\][^\s'\":]+")
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# Missing permissions, a read-only, full or failing disk, too many open files.
_PLACE = frozenset({
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
})  # fmt: skip


def is_damage(error: BaseException | None) -> bool:
    """Tell if the error means that the file itself is damaged and must be replaced."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    if (code := _code(error)) is None:
        # Errors of Python itself have no code. They concern the data read, except `ProgrammingError`.
        return not isinstance(error, sqlite3.ProgrammingError)
    return code in _DAMAGE


def without_paths(error: sqlite3.Error) -> str:
    """SQLite's message without paths."""
    return _PATH.sub("a file", str(error))


def unusable(error: sqlite3.Error) -> str:
    """Why an undamaged file cannot be used, as the end of a sentence without full stop."""
    remedy = ". Check the permissions of its folder, and its disk" if _code(error) in _PLACE else ""
    return f"cannot be used now: {without_paths(error)}{remedy}"


def _code(error: sqlite3.Error) -> int | None:
    """Return the primary code: the low byte."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


_BINARY = getattr(os, "O_BINARY", 0)
_LOG_HEAD_BYTES, _FRAME_HEAD_BYTES, _LARGEST_PAGE_BYTES = 32, 24, 65_536
_SALTS_OF_LOG, _SALTS_OF_FRAME = slice(16, 24), slice(8, 16)
# Of the index: page size and number of frames, the salts, and how many frames are in the file already.
_INDEX_HEAD_BYTES = 100
_SIZES, _SIZES_AT = struct.Struct("=HI"), 14
_SALTS = slice(32, 40)
_COPIED, _COPIED_AT = struct.Struct("=I"), 96
# So many frames are looked at, the first and the last among them: a transaction cannot wait for all.
_FRAMES_SEEN = 16
_TRIES, _BETWEEN_SECONDS = 50, 0.01

# A process that closes a file ends all its locks on it, also SQLite's. So an index stays open as long as it exists.
_open_indexes: dict[tuple[int, int], int] = {}
_using_indexes = threading.Lock()


class Log:
    """The log of a database. It stays open, to be checked after it was removed. A missing log counts as whole."""

    def __init__(self, path: Path) -> None:
        self._index = path.with_name(f"{path.name}-shm")
        self._log: int | None = None
        with suppress(OSError):
            self._log = os.open(path.with_name(f"{path.name}-wal"), os.O_RDONLY | _BINARY)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def discard_if_broken(self) -> bool:
        """Return True if the log lacks what is not in the file yet. SQLite then goes on with what is in the file.

        For that the index is emptied: SQLite makes it anew from what it can verify of the log. What cannot be read, for
        want of descriptors or permissions, counts as whole.
        """
        with _using_indexes, suppress(OSError):
            index = _opened(self._index)
            while self._log is not None and _is_broken(head := os.pread(index, _INDEX_HEAD_BYTES, 0), self._log):
                # Another process may have written between the two looks.
                if head == os.pread(index, _INDEX_HEAD_BYTES, 0):
                    os.pwrite(index, bytes(_INDEX_HEAD_BYTES), 0)
                    return True
        return False


def copy_log(path: Path) -> None:
    """Copy the log into the file itself, and that to the disk. A reader of an older state may keep the rest in the log.

    Raises `sqlite3.Error`.
    """
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        for _ in range(_TRIES):
            busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and frames == copied:
                return
            time.sleep(_BETWEEN_SECONDS)


def _opened(index: Path) -> int:
    for identity, descriptor in list(_open_indexes.items()):
        if os.fstat(descriptor).st_nlink == 0:
            os.close(_open_indexes.pop(identity))
    status = index.stat()
    identity = status.st_dev, status.st_ino
    if identity not in _open_indexes:
        _open_indexes[identity] = os.open(index, os.O_RDWR | _BINARY)
    return _open_indexes[identity]


def _is_broken(head: bytes, log: int) -> bool:
    if len(head) < _INDEX_HEAD_BYTES:
        return False
    page, frames = _SIZES.unpack_from(head, _SIZES_AT)
    [copied] = _COPIED.unpack_from(head, _COPIED_AT)
    if frames <= copied:
        return False
    # The largest size does not fit into the field.
    frame = _FRAME_HEAD_BYTES + (page if page > 1 else _LARGEST_PAGE_BYTES)
    if os.fstat(log).st_size < _LOG_HEAD_BYTES + frames * frame:
        return True
    seen = {*range(copied, frames, (frames - copied) // _FRAMES_SEEN + 1), frames - 1}
    return os.pread(log, _LOG_HEAD_BYTES, 0)[_SALTS_OF_LOG] != head[_SALTS] or any(
        os.pread(log, _FRAME_HEAD_BYTES, _LOG_HEAD_BYTES + number * frame)[_SALTS_OF_FRAME] != head[_SALTS]
        for number in seen
    )
