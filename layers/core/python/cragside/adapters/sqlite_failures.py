"""What a failure of SQLite says of a file: that it is damaged, or that it cannot be used where it is."""

import re
import sqlite3

_PATH = re.compile(r"(?:[A-Za-z]:)?[/\\][^\s'\":]+")
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# A folder that may not be read or written, a read-only or full disk, one that fails, too many open files.
_PLACE = frozenset({
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
})  # fmt: skip


def is_damage(error: BaseException | None) -> bool:
    """Whether it is a failure of SQLite by which the file itself is damaged, so that only another one helps."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    if (code := _code(error)) is None:
        # Python's own complaints have none: of what it read, or, as a `ProgrammingError`, of its caller.
        return not isinstance(error, sqlite3.ProgrammingError)
    return code in _DAMAGE


def told(error: sqlite3.Error) -> str:
    """What SQLite says, without the paths that some of its messages name."""
    return _PATH.sub("a file", str(error))


def unusable(error: sqlite3.Error) -> str:
    """What is wrong with a file that is not damaged, as the end of a sentence without its full stop."""
    remedy = ". Check the permissions of its folder, and its disk" if _code(error) in _PLACE else ""
    return f"cannot be used now: {told(error)}{remedy}"


def _code(error: sqlite3.Error) -> int | None:
    """The primary code, which is the low byte."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
