"""Reads and writes the manifest of a baked store: `baked.json` pins every file by size and SHA-256."""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cragside.domain.names import WORKSPACE_PATTERN
from cragside.store.ledger.sqlite.database import FILE_NAME

MANIFEST = "baked.json"
FORMAT = 1
# A pipe without a writer is opened without waiting for one. Windows has no such flag, and no such pipes.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
# Ten thousand workspaces take less.
MAX_MANIFEST_BYTES = 4_000_000

# A workspace's name and the one file that is in it: nothing that could lead out of the folder.
_FILE = re.compile(rf"(?P<workspace>{WORKSPACE_PATTERN})/" + re.escape(FILE_NAME))
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ManifestError(Exception):
    """Says what is wrong with a manifest that cannot be used. The message follows the name of the file."""


@dataclass(frozen=True, slots=True)
class BakedFile:
    """Has the size in bytes and the SHA-256 of a file as it was baked."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BakedWorkspace:
    """Has the sizes of a workspace as it was baked, and the embedding model that built it."""

    embedding_model: str
    documents: int
    passages: int
    entities: int
    relations: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Has the workspaces of a baked store, and its files by their names relative to its folder."""

    workspaces: Mapping[str, BakedWorkspace]
    files: Mapping[str, BakedFile]

    def content(self) -> bytes:
        """Return the manifest as `baked.json` holds it; its hash pins the whole store."""
        known = {
            "format": FORMAT,
            "workspaces": {name: asdict(self.workspaces[name]) for name in sorted(self.workspaces)},
            "files": {name: asdict(self.files[name]) for name in sorted(self.files)},
        }
        return json.dumps(known, indent=2).encode() + b"\n"


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest from its bytes. Raises `ManifestError`."""
    try:
        known = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ManifestError("is not JSON") from error
    if not isinstance(known, dict) or "format" not in known:
        raise ManifestError("is not the manifest of a baked store")
    if known["format"] != FORMAT:
        raise ManifestError(f"has format {known['format']!s:.20}, and this version of cragside reads format {FORMAT}")
    files = _entries(known, "files", _file)
    workspaces = _entries(known, "workspaces", _workspace)
    if sorted(files) != sorted(map(file_of, workspaces)):
        raise ManifestError("does not name one store for each workspace")
    return Manifest(workspaces, files)


def read_manifest(folder: Path) -> tuple[Manifest, str] | None:
    """Read the folder's manifest. Return it with its SHA-256, None when it is no baked store.

    Raises `ManifestError` and `OSError`.
    """
    if not is_baked(folder):
        return None
    # Not to wait for a pipe that takes the file's place just now.
    with open(folder / MANIFEST, "rb", opener=lambda path, flags: os.open(path, flags | _AT_ONCE)) as file:
        content = file.read(MAX_MANIFEST_BYTES + 1)
    if len(content) > MAX_MANIFEST_BYTES:
        raise ManifestError("is too long for a manifest")
    return parse_manifest(content), hashlib.sha256(content).hexdigest()


def is_baked(folder: Path) -> bool:
    """Return True if the folder has a manifest: a file of that name, and nothing else. Raises `OSError`."""
    status = _status(folder)
    return status is not None and stat.S_ISREG(status.st_mode)


def misplaced(folder: Path) -> str:
    """Describe a thing with the manifest's name that is no file, with a remedy; "" for none."""
    try:
        if _status(folder) is None or is_baked(folder):
            return ""
    except OSError:
        return ""
    return (
        f"{MANIFEST} in RAG_HOME is not a file, so it is no manifest of a baked store and is passed over. Move it out "
        "of RAG_HOME, or rename it if it is a workspace's folder."
    )


def _status(folder: Path) -> os.stat_result | None:
    """Return `stat` of the manifest's path, following links; None if there is none."""
    path = folder / MANIFEST
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path.lstat() if path.is_symlink() else None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return path.lstat() if path.is_symlink() else None
        raise


def file_of(workspace: str) -> str:
    """Return the name of a workspace's file in the manifest."""
    return f"{workspace}/{FILE_NAME}"


def baked_file(path: Path) -> BakedFile:
    """Measure and hash a file as it is now."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BakedFile(path.stat().st_size, digest)


def damage_of(folder: Path, manifest: Manifest, names: "list[str] | None" = None, *, hashes: bool = False) -> str:
    """Describe the first fault of the named files, by default all: missing, unreadable, other size or hash; else ""."""
    for name in sorted(manifest.files) if names is None else names:
        wanted = manifest.files[name]
        try:
            with (folder / name).open("rb") as file:
                size = file.seek(0, 2)
            if size != wanted.bytes:
                return f"{name} has {size} bytes instead of {wanted.bytes}"
            if hashes and baked_file(folder / name) != wanted:
                return f"{name} is not what was baked (its SHA-256 differs)"
        except OSError as error:
            return f"{name} is missing" if isinstance(error, FileNotFoundError) else f"{name}: {error.strerror}"
    return ""


def _entries(known: Mapping[str, Any], field: str, parse: "Callable[[str, Any], Any]") -> dict[str, Any]:
    entries = known.get(field)
    if not isinstance(entries, dict) or not entries:
        raise ManifestError(f"names no {field}")
    try:
        return {name: parse(name, entry) for name, entry in entries.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"has an entry among its {field} that cannot be used") from error


def _file(name: str, entry: Any) -> BakedFile:
    if not _FILE.fullmatch(name) or not _SHA256.fullmatch(entry["sha256"]):
        raise ValueError(name)
    return BakedFile(_count(entry["bytes"]), entry["sha256"])


def _workspace(_: str, entry: Any) -> BakedWorkspace:
    sizes = (_count(entry[field]) for field in ("documents", "passages", "entities", "relations"))
    return BakedWorkspace(str(entry["embedding_model"]), *sizes)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value
