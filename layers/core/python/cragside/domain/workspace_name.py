"""The rules for names of workspaces. A workspace's folder in RAG_HOME has its name."""

import re

from cragside.domain.errors import ValidationError

WORKSPACE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
# Endings of files in RAG_HOME: those of stores, queues and baked stores, now or later, and those of SQLite.
_ENDS_OF_FILES = (
    *(".json", ".db", ".sqlite", ".sqlite3", ".lock", ".tmp", ".log", ".pid"),
    *("-wal", "-shm", "-journal"),
)
# On Windows these are names of devices, with any extension.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"com{number}" for number in range(10)), *(f"lpt{number}" for number in range(10))}
)


def is_shaped_like_a_name(text: str) -> bool:
    """Whether a text has the form of a name. Stores of older versions may have such a name that is invalid now."""
    return re.fullmatch(WORKSPACE_PATTERN, text) is not None


def workspace_name(given: object) -> str:
    """The name in lower case: case makes no difference. Raises `ValidationError` for an invalid name."""
    if not isinstance(given, str) or not is_shaped_like_a_name(given):
        raise _refused(
            "A workspace name has 1 to 63 letters, digits, dots, dashes or underscores and begins with a letter or "
            "digit."
        )
    name = given.lower()
    if name.endswith("."):
        raise _refused("A workspace name must not end with a dot. Choose another name.")
    if name.partition(".")[0] in _DEVICES:
        raise _refused(f"{name} is the name of a device on Windows. Choose another name for the workspace.")
    if end := next((end for end in _ENDS_OF_FILES if name.endswith(end)), None):
        raise _refused(f"A workspace name must not end with {end}, as files of the store do. Choose another name.")
    return name


def _refused(reason: str) -> ValidationError:
    return ValidationError(reason, field="workspace")
