"""Other processes see the locks that this one has on an open store."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cragside.ports.clock import SYSTEM_CLOCK
from cragside.store.sqlite.database import FILE_NAME, Database
from cragside.store.sqlite.upkeep import Checkup

_ANOTHER_PROCESS = """import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("INSERT INTO meta VALUES (?, 'here')", (sys.argv[2],))
connection.commit()
connection.close()
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database.acquire(tmp_path)
    yield opened
    opened.release()


def written_elsewhere(database: Database, key: str) -> None:
    subprocess.run([sys.executable, "-c", _ANOTHER_PROCESS, str(database.path), key], check=True)


async def test_a_store_that_was_checked_stays_whole_when_another_process_closes_it(database: Database) -> None:
    """The last connection that SQLite knows of removes the write-ahead log."""
    checkup = Checkup(database, SYSTEM_CLOCK)
    for key in ("first", "second"):
        assert await checkup.damage() == ""
        with database.transaction() as connection:
            connection.execute("INSERT INTO meta VALUES (?, 'here')", (f"{key} own",))
        written_elsewhere(database, key)
        assert database.path.with_name(f"{FILE_NAME}-wal").exists()
        assert database.meta(key) == "here"
    assert await checkup.damage(whole=True) == ""
    await checkup.close()
    with closing(sqlite3.connect(database.path)) as connection:
        assert connection.execute("SELECT count(*) FROM meta WHERE value = 'here'").fetchone() == (4,)


def test_a_connection_that_outlives_the_store_keeps_its_locks(tmp_path: Path) -> None:
    """A thread that tidies up or checks may still be at work when an interrupt closes the store."""
    database = Database.acquire(tmp_path)
    with closing(sqlite3.connect(database.path)) as other:
        assert other.execute("SELECT count(*) FROM meta").fetchone()
        database.release()
        written_elsewhere(database, "late")
        assert database.path.with_name(f"{FILE_NAME}-wal").exists()
        assert other.execute("SELECT value FROM meta WHERE key = 'late'").fetchone() == ("here",)
