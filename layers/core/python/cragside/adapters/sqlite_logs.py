"""SQLite's write-ahead log (`-wal`) under hands other than SQLite's.

SQLite trusts the log while a file is open. If somebody cuts or overwrites it meanwhile, SQLite copies what stands there
now into the file, which damages it. The index of the log (`-shm`) says how much of the log is still to be copied, and
the log's salts: https://sqlite.org/walformat.html.
"""

import os
import sqlite3
import struct
import time
from contextlib import closing, suppress
from pathlib import Path

_LOG_HEAD_BYTES, _FRAME_HEAD_BYTES, _LARGEST_PAGE_BYTES = 32, 24, 65_536
_SALTS_OF_LOG = slice(16, 24)
# Of the index: page size and number of frames, the salts, and how many frames are in the file already.
_INDEX_HEAD_BYTES = 100
_SIZES, _SIZES_AT = struct.Struct("=HI"), 14
_SALTS = slice(32, 40)
_COPIED, _COPIED_AT = struct.Struct("=I"), 96
_TRIES, _BETWEEN_SECONDS = 50, 0.01

# A process that closes a file ends all its locks on it, also SQLite's. So an index stays open as long as it exists.
_open_indexes: dict[tuple[int, int], int] = {}


def discard_broken_log(path: Path) -> bool:
    """Return True if the log of a database lacks what is not in its file yet. SQLite then goes on with the file.

    For that the index is emptied: SQLite makes it anew from what it can verify of the log. Raises `OSError`.
    """
    try:
        index = _opened(path.with_name(f"{path.name}-shm"))
    except FileNotFoundError:
        return False
    log = path.with_name(f"{path.name}-wal")
    while _is_broken(head := os.pread(index, _INDEX_HEAD_BYTES, 0), log):
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
        # Threads share this: only one of them closes it.
        if os.fstat(descriptor).st_nlink == 0 and _open_indexes.pop(identity, None) is not None:
            os.close(descriptor)
    status = index.stat()
    identity = status.st_dev, status.st_ino
    if identity not in _open_indexes:
        _open_indexes[identity] = os.open(index, os.O_RDWR | getattr(os, "O_BINARY", 0))
    return _open_indexes[identity]


def _is_broken(head: bytes, log: Path) -> bool:
    if len(head) < _INDEX_HEAD_BYTES:
        return False
    page, frames = _SIZES.unpack_from(head, _SIZES_AT)
    if frames <= _COPIED.unpack_from(head, _COPIED_AT)[0]:
        return False
    # A log that was removed is another matter: SQLite still has it.
    with suppress(FileNotFoundError), log.open("rb") as file:
        # The largest size does not fit into the field.
        needed = _LOG_HEAD_BYTES + frames * (_FRAME_HEAD_BYTES + (page if page > 1 else _LARGEST_PAGE_BYTES))
        return os.fstat(file.fileno()).st_size < needed or file.read(_LOG_HEAD_BYTES)[_SALTS_OF_LOG] != head[_SALTS]
    return False
