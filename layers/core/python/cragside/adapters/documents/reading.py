"""What a reader of a format hands back, and the bounds that hold for all of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from cragside.domain.document import DocType, Mark

MAX_CHARACTERS = 50 * 1024 * 1024
MAX_MARKS = 20_000
MAX_LABEL = 300
MAX_LISTED = 200


# The reason of files without any text.
EMPTY = "is empty"


class Unreadable(Exception):
    """A file that cannot be read; `reason` goes on after its name: "is empty"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of a file beside its bytes. `charset` is what its carrier said of it."""

    name: str
    file_type: str
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's text, and what could be told about it."""

    text: str
    doc_type: DocType = "text"
    title: str = ""
    marks: tuple[Mark, ...] = ()
    tier1: Mapping[str, Any] = field(default_factory=dict)


Reader = Callable[[bytes, Origin], Reading]


class Composer:
    """Puts a text together from pieces, with marks where pages and sections begin; both are bounded."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._marks: list[Mark] = []
        self._length = 0

    def mark(self, *, page: int | None = None, section: str = "") -> None:
        """What is added from here on is on this page and in this section."""
        if len(self._marks) < MAX_MARKS:
            self._marks.append(Mark(self._length, page, section))

    def add(self, text: str, *, end: str = "\n\n") -> None:
        """Append a piece. Raises `Unreadable` when the whole gets too long."""
        self._pieces += (text, end)
        self._length += len(text) + len(end)
        if self._length > MAX_CHARACTERS:
            raise Unreadable(f"holds more than {MAX_CHARACTERS:,} characters of text, which is the limit")

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._pieces)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks in their order."""
        return tuple(self._marks)


class Headings:
    """The path of headings that leads to where one is: "A > B"."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, heading: str) -> str:
        """Go to a heading of this level; those of its level and below are left behind. The path."""
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, label(heading, 120)))
        return self.path

    @property
    def path(self) -> str:
        """The headings from the outermost to the innermost."""
        return " > ".join(heading for _, heading in self._path[-8:])


def label(text: str, limit: int = MAX_LABEL) -> str:
    """One line of at most `limit` characters."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def name_as_title(name: str) -> str:
    """A file's name made readable."""
    readable = re.sub(r"[-_\s]+", " ", PurePath(name).stem).strip()
    return readable[:1].upper() + readable[1:]


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something; lists hold each thing once, and not too many."""
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, str):
            value = label(value)
        elif isinstance(value, list):
            value = [label(item) for item in dict.fromkeys(value) if item.strip()][:MAX_LISTED]
        if value not in (None, "", []):
            kept[name] = value
    return kept
