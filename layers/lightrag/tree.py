"""Prunes and normalises the files of a layer, and computes their hash and size."""

import fnmatch
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from layers.lightrag.elf import stripped

# The earliest time in a zip archive.
_EPOCH = 315_532_800
CACHE = "__pycache__"


def files(folder: Path, *, caches: bool = True) -> Iterator[Path]:
    """Every file below the folder, relative to it, in a fixed order, optionally without bytecode caches."""
    for path in sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()):
        if caches or CACHE not in path.parts:
            yield path


def size(folder: Path, *, caches: bool = True) -> int:
    """The bytes of all files below the folder; 0 if the folder is missing."""
    return sum((folder / path).stat().st_size for path in files(folder, caches=caches))


def digest(folder: Path, *, caches: bool = True) -> str:
    """A hash of the names and contents of all files below the folder."""
    total = hashlib.sha256()
    for path in files(folder, caches=caches):
        content = hashlib.sha256((folder / path).read_bytes()).hexdigest()
        total.update(f"{path.as_posix()}\0{content}\n".encode())
    return total.hexdigest()


def prune(
    folder: Path, *, folders: Sequence[str], endings: Sequence[str], paths: Sequence[str], metadata: Sequence[str]
) -> None:
    """Remove folders by name, files by ending, globs, and all but the named files of dist-info folders."""
    for pattern in paths:
        for path in folder.glob(pattern):
            _remove(path)
    for path in [path for name in folders for path in folder.rglob(name)]:
        _remove(path)
    for path in [path for path in folder.rglob("*") if path.is_file() and path.name.endswith(tuple(endings))]:
        _remove(path)
    for info in folder.glob("*.dist-info"):
        _keep(info, metadata)


def strip(folder: Path) -> None:
    """Remove the symbols from all shared objects."""
    for path in folder.rglob("*.so*"):
        path.write_bytes(stripped(path.read_bytes()))


def shake(folder: Path) -> None:
    """Remove empty folders."""
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def normalise(folder: Path) -> None:
    """Give everything the same dates and modes."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (_EPOCH, _EPOCH))


def _keep(info: Path, wanted: Sequence[str]) -> None:
    for path in [path for path in info.rglob("*") if path.is_file()]:
        name = path.relative_to(info).as_posix()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted):
            path.unlink()
    # The project's description follows the first empty line.
    described = info / "METADATA"
    described.write_bytes(described.read_bytes().partition(b"\n\n")[0] + b"\n")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
