"""Folders in the temporary directory that belong to one process, and those that ended processes have left there."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from cragside.databases.private_files import FILE_MODE, FOLDER_MODE

_LOCK = ".lock"


class OwnFolder:
    """A folder of this process alone, made when it is first needed.

    Lambda starts a function that was killed in the same place again, and leaves its files there. So making one first
    removes those whose processes have ended: a process keeps the lock beside its folder.
    """

    def __init__(self, kind: str) -> None:
        self._kind = f"cragside-{kind}-"
        self.path = Path(tempfile.gettempdir(), f"{self._kind}{os.urandom(8).hex()}")
        self._lock: FileLock | None = None

    def make(self) -> Path:
        """Make the folder, unless it is there. Raises `OSError`."""
        if self._lock is None:
            self._sweep()
            lock = _lock_of(self.path)
            lock.acquire()
            self.path.mkdir(mode=FOLDER_MODE, exist_ok=True)  # nobody else knows its name
            self._lock = lock
        return self.path

    def remove(self) -> None:
        """Remove the folder with all that is in it. The next use makes it again."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            _remove(self.path, self._lock)
            self._lock = None

    def _sweep(self) -> None:
        for left in self.path.parent.glob(f"{self._kind}*{_LOCK}"):
            lock = _lock_of(left.with_suffix(""))
            with suppress(Timeout, OSError):  # a process has it, or it is somebody else's
                lock.acquire()
                _remove(left.with_suffix(""), lock)


def _lock_of(folder: Path) -> FileLock:
    return FileLock(folder.with_name(f"{folder.name}{_LOCK}"), timeout=0, thread_local=False, mode=FILE_MODE)


def _remove(folder: Path, lock: FileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    Path(lock.lock_file).unlink(missing_ok=True)
    lock.release(force=True)
