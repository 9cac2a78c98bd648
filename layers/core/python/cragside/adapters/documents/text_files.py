"""Plain text and Markdown files as texts to index. What cannot be read is data with a reason, never an exception."""

import codecs
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from cragside.domain.document import SourceText

SUPPORTED_TYPES = (".md", ".txt")
MAX_FILE_BYTES = 50 * 1024 * 1024

# UTF-32's little-endian mark begins with UTF-16's, so the longer ones come first.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL_CHARACTERS = 0.01
_LEADS_OUT = "is a link that leads out of the folder; give its target itself to index it"
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CODE_FENCE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++(\S.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file worth reading; `name` identifies it in its workspace."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that is not read, and why. `skipped`: nobody asked for this very file, so it is no failure."""

    name: str
    reason: str
    skipped: bool = False


def find_texts(paths: Iterable[Path]) -> Iterator[FoundFile | Refused]:
    """The text files among `paths` and below their folders, each once, in the order of their names.

    A file below a folder is named by its path relative to that folder, a file given by itself by its own name.
    Hidden files and folders below a given folder are passed over; a folder that links lead back to is entered once.
    Links below a given folder that lead out of it are refused: who wrote the folder may not be who reads it.
    """
    seen_files: set[Path] = set()
    taken: dict[str, Path] = {}
    for found in (item for path in paths for item in _found_in(path)):
        if isinstance(found, FoundFile):
            real = Path(os.path.realpath(found.path))
            if real in seen_files:
                continue
            seen_files.add(real)
            if found.name in taken:
                yield Refused(found.name, "another file of this run has the same name: give their common parent folder")
                continue
            taken[found.name] = real
        yield found


def read_text(found: FoundFile, max_bytes: int = MAX_FILE_BYTES) -> SourceText | Refused:
    """The file's text, UTF-8, UTF-16 or UTF-32 by its byte order mark, else UTF-8, else Latin-1 (as Windows writes it).

    Refused: unreadable, longer than `max_bytes`, empty, binary, or not a regular file.
    """
    try:
        status = found.path.stat()
        if not stat.S_ISREG(status.st_mode):
            return Refused(found.name, "is not a regular file")
        if status.st_size > max_bytes:
            return Refused(found.name, f"has {_megabytes(status.st_size)}, the limit is {_megabytes(max_bytes)}")
        content = found.path.read_bytes()
    except OSError as error:
        return Refused(found.name, _reason(error))
    text = decode(content)
    if text is None:
        return Refused(
            found.name, "holds binary data, not text; if it is UTF-16 without byte order mark, save it as UTF-8"
        )
    if not text.strip():
        return Refused(found.name, "is empty")
    return SourceText(name=found.name, text=text, title=title_of(found.name, text))


def decode(content: bytes) -> str | None:
    """The text that the bytes hold, with plain line ends and without byte order mark; None when they are binary."""
    text = _decoded(content)
    if text is None or "\x00" in text:
        return None
    sample = text[:100_000]
    if len(_CONTROL_CHARACTER.findall(sample)) > _MOST_CONTROL_CHARACTERS * len(sample):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def title_of(name: str, text: str) -> str:
    """A Markdown text's first heading, else the file's name made readable."""
    path = PurePath(name)
    if path.suffix.lower() == ".md":
        for heading in _HEADING.finditer(_CODE_FENCE.sub("", _FRONT_MATTER.sub("", text, count=1))):
            if title := heading.group(1).rstrip().rstrip("#").rstrip():
                return title
    readable = re.sub(r"[-_\s]+", " ", path.stem).strip()
    return readable[:1].upper() + readable[1:]


def source_name(path: str) -> str:
    """The path as valid, normalised Unicode: file systems hold any bytes, and macOS decomposes accents."""
    return unicodedata.normalize("NFC", os.fsencode(path).decode("utf-8", "replace"))


def _found_in(path: Path) -> Iterator[FoundFile | Refused]:
    if path.is_dir():
        yield from _below(path)
    elif path.suffix.lower() in SUPPORTED_TYPES:
        yield FoundFile(source_name(path.name), path)
    else:
        yield Refused(source_name(path.name), _unsupported(path))


def _below(folder: Path) -> Iterator[FoundFile | Refused]:
    root = Path(os.path.realpath(folder))
    entered: set[str] = set()
    failures: list[OSError] = []
    for current, folders, files in os.walk(folder, onerror=failures.append, followlinks=True):
        real = os.path.realpath(current)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        visible = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in visible if not _leads_out(Path(current, name), root)]
        for name in sorted(set(visible).difference(folders)):
            yield Refused(source_name(Path(current, name).relative_to(folder).as_posix()), _LEADS_OUT)
        for file in sorted(name for name in files if not name.startswith(".")):
            path = Path(current, file)
            name = source_name(path.relative_to(folder).as_posix())
            if path.suffix.lower() in SUPPORTED_TYPES and _leads_out(path, root):
                yield Refused(name, _LEADS_OUT)
            elif path.suffix.lower() in SUPPORTED_TYPES:
                yield FoundFile(name, path)
            else:
                yield Refused(name, _unsupported(path), skipped=True)
    for failure in failures:
        yield Refused(source_name(os.path.relpath(failure.filename or folder, folder)), _reason(failure))


def _leads_out(path: Path, root: Path) -> bool:
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)


def _decoded(content: bytes) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            try:
                return content.decode(encoding)
            except UnicodeDecodeError:
                return None
    # Windows' code page is Latin-1 with quotes and dashes in place of control characters, as browsers read it too.
    for encoding in ("utf-8", "cp1252"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1")


def _unsupported(path: Path) -> str:
    kind = f"{path.suffix} files are" if path.suffix else "files without a type are"
    return f"{kind} not supported; supported are {' and '.join(SUPPORTED_TYPES)}"


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror or type(error).__name__}"


def _megabytes(size: int) -> str:
    return f"{size / 1024**2:.1f} MB"
