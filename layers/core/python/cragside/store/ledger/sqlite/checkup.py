"""Cheap integrity checks of a store's file."""

import asyncio
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

from cragside.databases.sqlite_files import is_damage, without_paths
from cragside.ports.clock import Clock
from cragside.store.ledger.sqlite.database import Database

# A whole check reads the file, 300 MB in a second or two. It is repeated after this, or after so many times its length.
_EVERY_SECONDS = 600.0
_SHARE = 100.0
# Seconds that a caller waits for the first whole check. After that it gets the result of the quick check.
PATIENCE_SECONDS = 1.0


class Checkup:
    """Check of one open store: the file's header and size at each question, and the errors of SQLite so far.

    Beside that `PRAGMA quick_check` reads all pages now and then, on a thread and a connection of its own.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._clock = clock
        self._database = database
        self._checking: asyncio.Task[str] | None = None
        self._due = 0.0
        self._found = ""

    async def damage(self, *, whole: bool = False) -> str:
        """Tell what is damaged, "" for nothing. With `whole` all pages are read now, however long it takes.

        Raises `LedgerError` if nothing can be written until cragside is started again.
        """
        if damage := await asyncio.to_thread(self._at_sight):
            # What is there now is opened anew. A header that cannot be read stays so, and takes nothing more.
            self._database.damage = self._database.damage or ("" if self._database.is_removed() else damage)
            return damage
        if self._database.damage:
            return self._database.damage
        self._database.refuse_lost_log()
        if self._checking is None and (whole or self._clock.monotonic() >= self._due):
            self._checking = asyncio.create_task(self._checked())
        if self._checking is not None:
            await asyncio.wait([self._checking], timeout=None if whole else PATIENCE_SECONDS)
        return self._found

    async def close(self) -> None:
        """Wait for a check that is under way."""
        if self._checking is not None:
            await asyncio.wait([self._checking])

    async def _checked(self) -> str:
        began = self._clock.monotonic()
        try:
            self._found = await asyncio.to_thread(_pages, self._database.path, self._database.read_only)
            self._database.damage = self._database.damage or self._found
        finally:
            taken = self._clock.monotonic() - began
            self._due = self._clock.monotonic() + max(_EVERY_SECONDS, taken * _SHARE)
            self._checking = None
        return self._found

    def _at_sight(self) -> str:
        path = self._database.path
        try:
            status = path.stat()
        except FileNotFoundError:
            return "its file is missing"
        except OSError:
            # A place that cannot be used is not damage, and tells when it is used.
            return ""
        if stat.S_ISDIR(status.st_mode):
            return "its file is a folder now"
        if self._database.is_replaced(status):
            return "its file was replaced while it was open"
        if status.st_size == 0:
            return "its file is empty"
        return _header(path, self._database.read_only)


def _header(path: Path, read_only: bool) -> str:
    try:
        _answer(path, read_only, "PRAGMA schema_version")
    except sqlite3.Error as error:
        return _damage(error)
    return ""


def _pages(path: Path, read_only: bool) -> str:
    """Return the first complaint of `PRAGMA quick_check`."""
    try:
        complaint = str(_answer(path, read_only, "PRAGMA quick_check(1)"))
    except sqlite3.Error as error:
        return _damage(error)
    return "" if complaint == "ok" else " ".join(complaint.split())


def _answer(path: Path, read_only: bool, question: str) -> Any:
    """SQLite's answer to a pragma, read from the file anew.

    Only SQLite may open the file. Whatever else closes it ends the locks that the process has on it: another process
    that closes the store then removes the write-ahead log, which damages the store.
    """
    uri = f"{path.as_uri()}?mode=ro{'&immutable=1' if read_only else ''}"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return connection.execute(question).fetchone()[0]


def _damage(error: sqlite3.Error) -> str:
    return without_paths(error) if is_damage(error) else ""
