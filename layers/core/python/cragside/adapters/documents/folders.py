"""Finds files to index. A file that cannot be read is a result with a reason, never an exception."""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cragside.adapters.documents.kinds import named_kind, unsupported
from cragside.adapters.documents.loader import MAX_FILE_BYTES, too_large

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPED = re.compile(rb"\\(?:x([0-9a-f]{2})|\\)")
# May hold tokens, and is nobody's text.
_SETTINGS = "cragside.toml"
_LEADS_OUT = "is a link that leads out of the folder; give its target itself to index it"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read. `name` is shown to people; `source` identifies the file (see `source_of`).

    Whoever has `named` the file itself, and not its folder, expects it to be read.
    """

    name: str
    path: Path
    named: bool = field(default=False, compare=False)

    @property
    def source(self) -> str:
        """The absolute path as text."""
        return source_of(self.path)


@dataclass(frozen=True, slots=True)
class Refused:
    """A file or folder that is not read, and why. If `skipped`, it is no failure of a run."""

    name: str
    reason: str
    skipped: bool = False
    source: str = field(default="", compare=False)


def find_files(paths: Iterable[Path]) -> Iterator[FoundFile | Refused]:
    """Yield the supported files among `paths` and below their folders, each once, in the order of their names.

    A file below a folder is named by its path relative to that folder; a file in `paths` has its own name. Files may
    share a name, but not a source. Hidden files and folders below a folder are skipped. A folder is entered once, even
    if links lead back to it. Links that lead out of a given folder are refused, because its author may be untrusted.
    """
    seen_files: set[Path] = set()
    for found in (item for path in paths for item in _found_in(path)):
        if isinstance(found, FoundFile):
            real = Path(os.path.realpath(found.path))
            if real in seen_files:
                continue
            seen_files.add(real)
        yield found


def read_file(found: FoundFile, max_bytes: int = MAX_FILE_BYTES) -> bytes | Refused:
    """Return the file's bytes.

    Refused: unreadable, or not a regular file. Skipped, unless named: longer than `max_bytes`.
    """
    try:
        status = found.path.stat()
        if not stat.S_ISREG(status.st_mode):
            return Refused(found.name, "is not a regular file", source=found.source)
        if status.st_size > max_bytes:
            reason = too_large(status.st_size, max_bytes)
            return Refused(found.name, reason, skipped=not found.named, source=found.source)
        with found.path.open("rb") as file:
            # The file may grow while it is read.
            return file.read(max_bytes + 1)
    except OSError as error:
        return Refused(found.name, _reason(error), source=found.source)


def source_name(path: str) -> str:
    """Return the path as valid, normalised Unicode. File systems allow any bytes, and macOS decomposes accents."""
    return unicodedata.normalize("NFC", os.fsencode(path).decode("utf-8", "replace"))


def source_of(path: str | Path) -> str:
    """Return the absolute path of a file, with links to its folder resolved. The file need not exist.

    It is unique: invalid bytes, control characters and backslashes are escaped.
    """
    folder, name = os.path.split(os.fspath(path).rstrip("/"))
    if name in ("", ".", ".."):
        folder, name = os.fspath(path), ""
    absolute = Path(os.path.realpath(folder or "."), name).as_posix()
    if sys.platform == "darwin":  # on which both forms of an accent are the same name
        absolute = unicodedata.normalize("NFC", absolute)
    text = os.fsencode(absolute).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda mark: f"\\x{ord(mark[0]):02x}", text)


def root_of(folder: Path) -> str:
    """Return the prefix of the sources of all files below a folder: its absolute path with links resolved."""
    return source_of(folder / "_").removesuffix("/_")


def path_of(source: str) -> str:
    """Return the path of a source from `source_of`."""
    return os.fsdecode(
        _ESCAPED.sub(lambda mark: bytes.fromhex(mark[1].decode()) if mark[1] else b"\\", source.encode())
    )


def _found_in(path: Path) -> Iterator[FoundFile | Refused]:
    if path.is_dir():
        yield from _below(path)
    elif named_kind(path.name):
        yield FoundFile(source_name(path.name), path, named=True)
    else:
        yield Refused(source_name(path.name), unsupported(path.name))


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
            path = Path(current, name)
            refused = source_name(path.relative_to(folder).as_posix())
            yield Refused(refused, _LEADS_OUT, source=source_of(path))
        for file in sorted(name for name in files if not name.startswith(".") and name != _SETTINGS):
            path = Path(current, file)
            name = source_name(path.relative_to(folder).as_posix())
            if named_kind(path.name) and _leads_out(path, root):
                yield Refused(name, _LEADS_OUT, source=source_of(path))
            elif named_kind(path.name):
                yield FoundFile(name, path)
            else:
                yield Refused(name, unsupported(path.name), skipped=True)
    for failure in failures:
        failed = failure.filename or folder
        yield Refused(source_name(os.path.relpath(failed, folder)), _reason(failure), source=root_of(Path(failed)))


def _leads_out(path: Path, root: Path) -> bool:
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root)


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror or type(error).__name__}"
