"""Which names a workspace can have. Its name is the name of its folder in RAG_HOME."""

import re

from cragside.domain.errors import ValidationError

WORKSPACE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
# How files end that a store, a queue or a baked store keeps, may keep later, or that SQLite puts beside its own.
_ENDS_OF_FILES = (
    *(".json", ".db", ".sqlite", ".sqlite3", ".lock", ".tmp", ".log", ".pid"),
    *("-wal", "-shm", "-journal"),
)
# Windows takes these for devices, whatever follows a dot.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"com{number}" for number in range(10)), *(f"lpt{number}" for number in range(10))}
)


def is_shaped_like_a_name(text: str) -> bool:
    """Whether a text has the form of a name. A store made by an older version may have one that is refused now."""
    return re.fullmatch(WORKSPACE_PATTERN, text) is not None


def workspace_name(given: object) -> str:
    """The name in lower case: names that differ in case only are one. Raises `ValidationError` for what is no name."""
    if not isinstance(given, str) or not is_shaped_like_a_name(given):
        raise _refused(
            "A workspace name has 1 to 63 letters, digits, dots, dashes or underscores and begins with a letter or "
            "digit."
        )
    name = given.lower()
    if name.endswith("."):
        raise _refused("A workspace name does not end with a dot. Choose another name.")
    if name.partition(".")[0] in _DEVICES:
        raise _refused(f"Windows takes {name} for a device. Choose another name for the workspace.")
    if end := next((end for end in _ENDS_OF_FILES if name.endswith(end)), None):
        raise _refused(f"A workspace name does not end with {end}: files of the store do. Choose another name.")
    return name


def _refused(reason: str) -> ValidationError:
    return ValidationError(reason, field="workspace")
