"""The names of workspaces, their memories, end users and documents."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator

from cragside.domain.errors import ValidationError
from cragside.domain.query import Condition, Filter

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
    """Tell if a text has the form of a name. Stores of older versions may have such a name that is invalid now."""
    return re.fullmatch(WORKSPACE_PATTERN, text) is not None


def workspace_name(given: object) -> str:
    """Return the name in lower case: case makes no difference. Raises `ValidationError` for an invalid name."""
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


# Names of workspaces cannot contain this character.
_MEMORY = "~memory"


def memory_of(workspace: str) -> str:
    """Return the name under which the exchanges of a workspace are stored."""
    return f"{workspace}{_MEMORY}"


def is_memory(name: str) -> bool:
    """Tell if this is the name of a memory store."""
    return name.endswith(_MEMORY)


def owner_of(name: str) -> str:
    """Return the workspace that a store of documents or exchanges belongs to."""
    return name.removesuffix(_MEMORY)


def store_name(given: object) -> str:
    """Return the name of a workspace or of its memory, in lower case. Raises `ValidationError` for an invalid name."""
    if isinstance(given, str) and is_memory(given):
        return memory_of(workspace_name(owner_of(given)))
    return workspace_name(given)


def spoken(name: str) -> str:
    """Return the name of a store as messages show it."""
    return f"{owner_of(name)} (its memory)" if is_memory(name) else name


# The field of an exchange's metadata with the name of its user.
END_USER_FIELD = "endUser"
_LONGEST = 128


def end_user_name(given: object) -> str:
    """Return the name of a user as memory keeps it, "" for none.

    A name that is long, unprintable or no text is replaced by its digest.
    """
    if given is None:
        return ""
    is_text = isinstance(given, str)
    name = str(given).strip() if is_text else json.dumps(given, sort_keys=True, default=str)
    if is_text and len(name) <= _LONGEST and name.isprintable():
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()}"


def exchanges_of(name: str) -> Filter:
    """Return the filter for the exchanges of a user; for "", for those without a user."""
    return Filter((Condition(END_USER_FIELD, name) if name else Condition(END_USER_FIELD, None, how="absent"),))


# Of more documents of one name than that, each is shown with its whole source: telling all of them apart takes long.
MOST_NAMESAKES = 200


def distinct_labels(
    name: str, sources: Collection[str], *, taken: Callable[[Collection[str]], Collection[str]]
) -> dict[str, str]:
    """Return a label for each source of one name: the name with as much of the source as makes it unique.

    For paths these are the nearest parent folders: "w1/todo.md" and "w2/todo.md". `taken` returns those of the given
    labels that other documents already have.
    """
    if len(sources) < 2:
        return dict.fromkeys(sources, name)
    labels = {source: in_full(name, source) for source in sources}
    waiting = {source: _longer(name, source) for source in sources}
    while waiting:
        tried = {source: longer for source, names in waiting.items() if (longer := next(names, None))}
        free = {longer for longer, times in Counter(tried.values()).items() if times == 1}
        free.difference_update(taken(free))
        labels.update((source, longer) for source, longer in tried.items() if longer in free)
        waiting = {source: waiting[source] for source, longer in tried.items() if longer not in free}
    return labels


def names_below(path: str) -> list[str]:
    """Every name that a file has below one of its parent folders, shortest first: "c", "b/c", "a/b/c" for "/a/b/c"."""
    name = path.rpartition("/")[2]
    return [name, *_longer(name, path)]


def in_full(name: str, source: str) -> str:
    """Return the name with the whole source, unless the source ends with the name."""
    if source == name or source.endswith(f"/{name}"):
        return source
    return f"{name} ({source})"


def _longer(name: str, source: str) -> Iterator[str]:
    """Yield the name with one, two, ... of its parent folders. Nothing if the source is not a path to it."""
    if not source.endswith(f"/{name}"):
        return
    for folder in reversed(source.removesuffix(f"/{name}").split("/")):
        if folder:
            name = f"{folder}/{name}"
            yield name
