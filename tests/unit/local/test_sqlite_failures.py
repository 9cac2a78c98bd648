"""Real errors of SQLite for damaged files, and for places where a file cannot be used."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from cragside.databases.sqlite_files import is_damage, unusable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An intact database of several pages."""
    path = tmp_path / "store.sqlite3"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE t (a TEXT)")
        made.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,) for _ in range(20)])
    return path


def failure(path: Path, sql: str = "SELECT * FROM t", mode: str = "rwc") -> sqlite3.Error:
    address = f"{path.as_uri()}?mode={mode}"
    with pytest.raises(sqlite3.Error) as raised, closing(sqlite3.connect(address, timeout=0, uri=True)) as connection:
        connection.execute(sql).fetchall()
    return raised.value


def code(number: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> sqlite3.Error:
    error = kind("said by SQLite")
    error.sqlite_errorcode = number
    return error


@contextmanager
def no_file_left_to_open() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_file_that_is_no_database_is_damaged(file: Path) -> None:
    file.write_bytes(b"no database at all " * 100)
    assert is_damage(failure(file))


def test_a_file_with_torn_pages_is_damaged(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    assert is_damage(failure(file))


def test_text_that_python_cannot_read_is_damage(file: Path) -> None:
    assert is_damage(failure(file, "SELECT CAST(x'ff' AS TEXT)"))


def test_a_mistake_of_ours_is_no_damage(file: Path) -> None:
    assert not is_damage(failure(file, "SELECT ?"))
    assert not is_damage(failure(file, "SELECT * FROM nobody"))
    connection = sqlite3.connect(file)
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError) as closed:
        connection.execute("SELECT 1")
    assert not is_damage(closed.value)
    assert not is_damage(OSError(28, "No space left on device"))
    assert not is_damage(None)


def test_a_folder_in_the_place_of_a_file_is_no_damage(file: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    error = failure(tmp_path / "folder")
    assert not is_damage(error)
    assert unusable(error) == (
        "cannot be used now: unable to open database file. Check the permissions of its folder, and its disk"
    )


def test_too_many_open_files_are_no_damage(file: Path) -> None:
    with no_file_left_to_open():
        error = failure(file)
    assert not is_damage(error)
    assert "unable to open database file. Check" in unusable(error)


def test_a_file_that_may_only_be_read_is_not_damaged(file: Path) -> None:
    error = failure(file, "DELETE FROM t", mode="ro")
    assert not is_damage(error)
    assert unusable(error).startswith("cannot be used now: attempt to write a readonly database. Check")


def test_a_full_disk_is_no_damage(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,) for _ in range(20)])
    assert not is_damage(full.value)
    assert unusable(full.value).startswith("cannot be used now: database or disk is full. Check")


def test_a_file_that_another_process_holds_is_not_damaged(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        error = failure(file)
    assert not is_damage(error)
    assert unusable(error) == "cannot be used now: database is locked"


@pytest.mark.parametrize(
    "number", [sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_READONLY_DIRECTORY]
)
def test_disk_errors_are_not_reported_as_damage(number: int) -> None:
    assert not is_damage(code(number))
    assert "Check the permissions of its folder, and its disk" in unusable(code(number))


@pytest.mark.parametrize("number", [sqlite3.SQLITE_CORRUPT_INDEX, sqlite3.SQLITE_NOTADB])
def test_damage_is_damage_whatever_the_extended_code(number: int) -> None:
    assert is_damage(code(number, sqlite3.DatabaseError))
