"""Read the manifest of a baked store, and download such a store from an object store."""

import asyncio
import errno
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from cragside.databases.private_files import FOLDER_MODE, make_file
from cragside.domain.errors import ConfigurationError, NotFound, PayloadTooLarge, ServiceUnavailable
from cragside.domain.names import WORKSPACE_PATTERN
from cragside.ports.files import ObjectStore
from cragside.store.sqlite.database import FILE_NAME

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


async def fetch(objects: ObjectStore, sha256: str, folder: Path) -> None:
    """Fetch the baked store whose manifest has this SHA-256 into `folder`, whole, unless it is there already.

    Raises `ConfigurationError` when it is not there, is another one or nobody may read it, and `ServiceUnavailable`.
    """
    try:
        if await asyncio.to_thread(_is_whole, folder, sha256):
            return
        scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=folder.parent, prefix=f"{folder.name}-"))
        try:
            fresh = scratch / "fresh"
            fresh.mkdir(mode=FOLDER_MODE)
            await _fetch_into(fresh, objects, sha256)
            await asyncio.to_thread(_publish, fresh, folder, sha256)
        finally:
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
    except OSError as error:
        reason = f"{objects.address} cannot be kept in the temporary directory: {error.strerror}."
        raise ServiceUnavailable("knowledge_base", reason).at(folder.parent) from error


async def _fetch_into(fresh: Path, objects: ObjectStore, sha256: str) -> None:
    held = io.BytesIO()
    await _fetch(objects, MANIFEST, held, limit=MAX_MANIFEST_BYTES)
    content = held.getvalue()
    # Before anything is read out of it: the names and sizes below are those that whoever set the hash knows of.
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise ConfigurationError(
            f"RAG_HOME_SHA256 asks for the baked store {sha256}, but {objects.address} holds {found}. Set the variable "
            "to what `cragside bake` printed, or upload that store."
        )
    for name, wanted in _manifest(content, objects).files.items():
        await _fetch_file(objects, name, wanted, fresh / name)
    make_file(fresh / MANIFEST)
    await asyncio.to_thread((fresh / MANIFEST).write_bytes, content)


async def _fetch_file(objects: ObjectStore, name: str, wanted: BakedFile, path: Path) -> None:
    path.parent.mkdir(mode=FOLDER_MODE)
    make_file(path)
    with path.open("wb") as file:
        await _fetch(objects, name, file, limit=wanted.bytes)
    if await asyncio.to_thread(baked_file, path) != wanted:
        raise ConfigurationError(f"{objects.address}/{name} is not what was baked. Upload the store again.")


async def _fetch(objects: ObjectStore, name: str, to: BinaryIO, *, limit: int) -> None:
    try:
        await objects.fetch(name, to, limit=limit)
    except NotFound as error:
        raise ConfigurationError(
            f"{objects.address} holds no {name}. Check RAG_HOME, and upload all that `cragside bake` made."
        ) from error
    except PayloadTooLarge as error:
        raise ConfigurationError(f"{objects.address}/{name} is longer than what was baked.") from error
    except ServiceUnavailable as error:
        raise ServiceUnavailable("knowledge_base", error.message) from error


def _manifest(content: bytes, objects: ObjectStore) -> Manifest:
    try:
        return parse_manifest(content)
    except ManifestError as error:
        raise ConfigurationError(f"{objects.address}/{MANIFEST} {error}.") from error


def _publish(fresh: Path, folder: Path, sha256: str) -> None:
    """Give the store its name, unless another process was faster; what is damaged there makes room."""
    try:
        _name(fresh, folder, sha256)
    except OSError:
        # Moved, not removed piece by piece: another process that found the same damage may have put a whole store
        # there since, and be reading it. It gets this one, which is the same.
        with suppress(FileNotFoundError):
            folder.rename(fresh.with_name("before"))
        _name(fresh, folder, sha256)


def _name(fresh: Path, folder: Path, sha256: str) -> None:
    try:
        fresh.rename(folder)
    except OSError:
        if not _is_whole(folder, sha256):
            raise


def _is_whole(folder: Path, sha256: str) -> bool:
    if not os.path.lexists(folder):
        return False
    _refuse_foreign(folder)
    try:
        found = read_manifest(folder)
    except (ManifestError, OSError):
        return False
    return found is not None and found[1] == sha256 and not damage_of(folder, found[0], hashes=True)


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder that somebody else could change after it was checked: temporary ones are for everybody."""
    status = folder.lstat()
    owned = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or not owned or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            f"{folder} is not a folder that only this user can write. Remove it, or set TMPDIR to another place."
        )
