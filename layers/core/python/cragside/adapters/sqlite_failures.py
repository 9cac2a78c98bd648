"""Tells whether a failure of SQLite means a damaged file or one that cannot be used now."""

import re
import sqlite3

_PATH = re.compile(r"(?<!\w)(?:[A-Za-z]:)?[/\\][^\s'\":]+")
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# Missing permissions, a read-only, full or failing disk, too many open files.
_PLACE = frozenset({
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
})  # fmt: skip


def is_damage(error: BaseException | None) -> bool:
    """Whether the error means that the file itself is damaged and must be replaced."""
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
    """The primary code: the low byte."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
