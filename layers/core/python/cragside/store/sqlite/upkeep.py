"""Check a store's file, and free disk space that it no longer needs."""

import asyncio
import logging
import sqlite3
import stat
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from cragside.databases.sqlite_files import is_damage, without_paths
from cragside.ports.clock import Clock
from cragside.store.errors import LedgerError
from cragside.store.sqlite.database import BUSY_MILLISECONDS, Database
from cragside.store.sqlite.schema import UNTIDY

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


# Deletions that follow each other are tidied up after together.
PAUSE_SECONDS = 2.0
# Each step is a transaction of some milliseconds; others may write between two of them.
_ROWS, _PAGES, _MERGED = 500, 1000, 500
_BETWEEN_SECONDS = 0.002
# The log is cut in a moment in which nobody reads or writes.
_CUTS, _BETWEEN_CUTS_SECONDS = 20, 0.05

# What a model has said of passages that no document has any more. What another passage refers to stays: LightRAG
# rebuilds descriptions from it.
_ORPHANED = """namespace = 'llm_response_cache'
    AND coalesce(json_extract(value, '$.chunk_id'), '') NOT IN (SELECT id FROM chunk)
    AND id NOT IN (SELECT used.value FROM kv AS text, json_each(text.value, '$.llm_cache_list') AS used
        WHERE text.namespace = 'text_chunks')"""

_log = logging.getLogger("cragside")


class Tidying:
    """Tidies one store up a moment after it was asked to. A kill meanwhile loses nothing; readers go on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._hurry = asyncio.Event()

    def ask(self) -> None:
        """Tidy up soon."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    @property
    def busy(self) -> bool:
        """Return True if tidying is asked for or under way."""
        return self._task is not None and not self._task.done()

    async def close(self) -> None:
        """Do at once what was asked for, and wait for it."""
        self._hurry.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._again:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), PAUSE_SECONDS)
            self._again = False
            try:
                self._database.refuse_lost_log()
                await asyncio.to_thread(_in_steps, self._database.path)
            except (sqlite3.Error, OSError, LedgerError) as error:
                # Nothing depends on it, and the next deletion asks again.
                _log.warning("The store %s is tidied up later: %s", self._database.path, error)


def _in_steps(path: Path) -> None:
    """Tidy up in short transactions."""
    with _opened(path) as connection:
        # On a full disk the rest has only the room that a deletion's log took.
        _cut_log(connection)
        # What is forgotten from now on has a mark of its own.
        mark = connection.execute("SELECT value FROM meta WHERE key = ?", (UNTIDY,)).fetchone()
        _forget_answers(connection)
        _merge_full_text(connection)
        while (before := _number(connection, "freelist_count")) > 0:
            connection.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
            if _number(connection, "freelist_count") >= before:
                break
            time.sleep(_BETWEEN_SECONDS)
        if _cut_log(connection):
            _settle(connection, mark)


def _settle(connection: sqlite3.Connection, mark: tuple[str] | None) -> None:
    """Remember that all is tidied up, unless something was forgotten meanwhile."""
    if mark is not None:
        connection.execute("DELETE FROM meta WHERE key = ? AND value = ?", (UNTIDY, *mark))


def _forget_answers(connection: sqlite3.Connection) -> None:
    keys = [row[0] for row in connection.execute(f"SELECT id FROM kv WHERE {_ORPHANED}")]  # noqa: S608 (our own)
    for start in range(0, len(keys), _ROWS):
        batch = keys[start : start + _ROWS]
        marks = ",".join("?" * len(batch))
        # Held against the store once more: another process may have taken one of the texts in meanwhile.
        connection.execute(f"DELETE FROM kv WHERE {_ORPHANED} AND id IN ({marks})", batch)  # noqa: S608 (our own)
        time.sleep(_BETWEEN_SECONDS)


def _merge_full_text(connection: sqlite3.Connection) -> None:
    """Drop what the full-text index keeps of deleted passages, as its 'optimize' does, but in steps."""
    amount = -_MERGED
    while True:
        before = connection.total_changes
        connection.execute("INSERT INTO passage (passage, rank) VALUES ('merge', ?)", (amount,))
        if connection.total_changes - before < 2:
            return
        amount = _MERGED
        time.sleep(_BETWEEN_SECONDS)


def _cut_log(connection: sqlite3.Connection) -> bool:
    """Write the log into the file and cut it; False if somebody always reads or writes.

    SQLite itself would wait with new writers kept out, so this asks again instead.
    """
    for _ in range(_CUTS):
        connection.execute("PRAGMA busy_timeout = 0")
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        if not busy:
            return True
        time.sleep(_BETWEEN_CUTS_SECONDS)
    return False


def _opened(path: Path) -> "closing[sqlite3.Connection]":
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BUSY_MILLISECONDS / 1000
    )
    connection.execute("PRAGMA synchronous = NORMAL")
    return closing(connection)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
