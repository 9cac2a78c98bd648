"""The result of a reader, and the limits of all readers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from cragside.domain.document import DocType, Mark

MAX_CHARACTERS = 50 * 1024 * 1024
MAX_MARKS = 20_000
MAX_LABEL = 300
MAX_LISTED = 200


# The reason of files without any text.
EMPTY = "is empty"
# The reasons of pictures, and of PDF whose pages are pictures. `NEEDS_OCR` says that the extra is not installed.
NEEDS_OCR = "needs the extra `ocr` of cragside to read text in pictures"
NO_TEXT = "holds no text that OCR can recognise"
# The reason of old Office files where the extra is not installed.
NEEDS_OFFICE = "needs the extra `office` of cragside: install it, or save the file as .docx, .xlsx or .pptx"


def is_no_mistake(reason: str) -> bool:
    """Tell if a file with this reason is skipped: a folder may well hold such files, so a run does not fail."""
    return reason in (EMPTY, NEEDS_OCR, NEEDS_OFFICE, NO_TEXT)


class Unreadable(Exception):
    """A file that cannot be read. `reason` continues a sentence after its name: "is empty"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def contained() -> Iterator[None]:
    """Raise `Unreadable` where a parser stops. A module that is not installed is no fault of the file."""
    try:
        yield
    except (Unreadable, ModuleNotFoundError):
        raise
    except MemoryError:
        raise Unreadable("needs more memory than a file may take") from None
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except Exception as error:
        raise Unreadable(f"cannot be read: its parser stopped ({type(error).__name__})") from error


@dataclass(frozen=True, slots=True)
class Ocr:
    """Recognition of text in pictures.

    `languages` are Tesseract's names, joined by a plus sign. `data` is the folder of their files, "" for those that the
    extra installs. `seconds` bound the reading of one file.
    """

    languages: str = "eng+deu"
    data: str = ""
    seconds: int = 240


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The facts about a file besides its bytes. `charset` was declared by whoever sent it.

    Without `ocr`, pictures are not read.
    """

    name: str
    file_type: str
    charset: str | None = None
    ocr: Ocr | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a file, with marks and annotations. `properties` is what the file says of itself beside its text.

    `pictured` are the pages without text that show something. `unread` says what else is missing from the text.
    """

    text: str
    doc_type: DocType = "text"
    title: str = ""
    marks: tuple[Mark, ...] = ()
    tier1: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    pictured: Sequence[int] = ()
    unread: str = ""


Reader = Callable[[bytes, FileOrigin], Reading]


class Composer:
    """Composes a text of pieces, with marks at pages and sections, within limits."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._marks: list[Mark] = []
        self._length = 0

    def mark(self, *, page: int | None = None, section: str = "", apart: bool = False) -> None:
        """Begin a page or a section. If `apart`, no passage crosses its beginning."""
        if len(self._marks) < MAX_MARKS:
            self._marks.append(Mark(self._length, page, section, apart))

    def add(self, text: str, *, end: str = "\n\n") -> None:
        """Append a piece. Raises `Unreadable` if the text gets too long."""
        self._pieces += (text, end)
        self._length += len(text) + len(end)
        if self._length > MAX_CHARACTERS:
            raise Unreadable(f"holds more than {MAX_CHARACTERS:,} characters of text, which is the limit")

    def extend(self, marks: Iterable[Mark], start: int) -> None:
        """Add the marks of a text that begins at `start`."""
        for mark in marks:
            if len(self._marks) < MAX_MARKS:
                self._marks.append(replace(mark, start=start + mark.start))

    def reading(self, facts: Mapping[str, Any] | None = None, title: str = "") -> Reading:
        """Return what was composed, with the `facts` of the document. `title` is for documents that state none."""
        facts = facts or {}
        return Reading(self.text, "text", facts.get("title") or title, self.marks, facts)

    @property
    def length(self) -> int:
        """The number of characters so far."""
        return self._length

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self._pieces)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks, in order."""
        return tuple(self._marks)


class Headings:
    """The path of headings to the current position: "A > B"."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, heading: str) -> str:
        """Enter a heading, which ends those of its level and below. Return the path."""
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
    """Return a readable form of a file's name."""
    readable = re.sub(r"[-_\s]+", " ", PurePath(name).stem).strip()
    return readable[:1].upper() + readable[1:]


def facts_of(title: str | None, author: str | None, created: str | None) -> dict[str, Any]:
    """Return the tier 1 annotations of a document that states its title, author and date, or some of them."""
    return present({"title": title, "author": author, "createdDate": created})


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with values. Lists are shortened and have no duplicates."""
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, str):
            value = label(value)
        elif isinstance(value, list):
            value = [label(item) for item in dict.fromkeys(value) if item.strip()][:MAX_LISTED]
        if value not in (None, "", []):
            kept[name] = value
    return kept
