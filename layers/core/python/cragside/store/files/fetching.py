"""Downloads a baked store from an object store and verifies each file; all or nothing."""

import asyncio
import hashlib
import io
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cragside.databases.private_files import FOLDER_MODE, make_file
from cragside.domain.errors import ConfigurationError, NotFound, PayloadTooLarge, ServiceUnavailable
from cragside.ports.files import ObjectStore
from cragside.store.files.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    BakedFile,
    Manifest,
    ManifestError,
    baked_file,
    damage_of,
    parse_manifest,
    read_manifest,
)


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
