"""Workspaces whose stores are versions of objects: fetched, opened read-only, and replaced by newer ones."""

import asyncio
import gzip
import hashlib
import logging
import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from typing_extensions import override

from cragside.databases.private_files import make_file, make_folder
from cragside.domain.errors import ConfigurationError, NotFound, ReadOnlyStore, ServiceUnavailable, ValidationError
from cragside.domain.names import store_name
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.files import ObjectVersion, VersionedStore
from cragside.store.backends.interface import Backend
from cragside.store.baked import BakedFile, baked_file, file_of
from cragside.store.baking import compacted
from cragside.store.home import Home
from cragside.store.temporary import OwnFolder

WORKSPACES = "ws/"
_PACKED = ".gz"
_NAME = re.compile(rf"{WORKSPACES}(?P<workspace>[^/]+)/[^/]+{re.escape(_PACKED)}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 20
# A faster level makes a file that is a tenth larger in a third of the time.
_LEVEL = 1
# What SQLite sorts and other files of the process need beside the stores.
_RESERVE_BYTES = 16 << 20

_log = logging.getLogger("cragside")


@dataclass(frozen=True, slots=True)
class Generation:
    """A published store of a workspace: its number, the object's version, and the file that is packed in it."""

    number: int
    object: ObjectVersion
    file: BakedFile

    @property
    def facts(self) -> dict[str, str]:
        """Return what is written beside the object."""
        return {"generation": str(self.number), "bytes": str(self.file.bytes), "sha256": self.file.sha256}


def object_of(workspace: str) -> str:
    """Return the name of the object with a workspace's store. Raises `ValidationError` for what is no such name."""
    return f"{WORKSPACES}{file_of(store_name(workspace))}{_PACKED}"


def generation_of(found: ObjectVersion) -> Generation:
    """Return the generation that an object is. Raises `ConfigurationError` if cragside did not write it."""
    number, size, sha256 = (found.facts.get(fact, "") for fact in ("generation", "bytes", "sha256"))
    if not (_is_count(number) and _is_count(size) and _SHA256.fullmatch(sha256)):
        raise ConfigurationError(f"{found.name} is no generation of a workspace: its metadata is not cragside's.")
    return Generation(int(number), found, BakedFile(int(size), sha256))


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16


async def fetch_generation(
    objects: VersionedStore, workspace: str, path: Path, *, known: str = "", version: str = "", room: int = 1
) -> Generation | None:
    """Unpack the store of a workspace to `path`, the newest or this version. None if its etag is `known`.

    There has to be `room` for the file so many times.

    A file that is not what was published is not left there. Raises `NotFound` without a generation,
    `ConfigurationError` for one that cragside did not write, and `ServiceUnavailable`, also if there is no room for it.
    """
    name, unpacking = object_of(workspace), _Unpacking(path, room)
    try:
        found = await objects.read(name, unpacking.begin, known=known, version=version)
        return None if found is None else await asyncio.to_thread(unpacking.end)
    except OSError as error:
        reason = f"{objects.address}/{name} cannot be kept in the temporary directory: {error.strerror}."
        raise ServiceUnavailable("knowledge_base", reason).at(path) from error
    except zlib.error as error:
        raise _damaged(name) from error
    except ServiceUnavailable as error:
        if error.component == "knowledge_base":
            raise
        raise ServiceUnavailable("knowledge_base", error.message) from error
    finally:
        unpacking.close()


class _Unpacking:
    """Writes the file that is packed in an object, up to the bytes that the object says it has."""

    def __init__(self, path: Path, room: int) -> None:
        self._path = path
        self._room = room
        self._file: BinaryIO | None = None
        self._whole = False
        self._digest = hashlib.sha256()
        self._unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._bytes = 0

    def begin(self, found: ObjectVersion) -> Callable[[bytes], object]:
        self._generation = generation_of(found)
        wanted = self._generation.file.bytes * self._room
        make_folder(self._path.parent)
        free = shutil.disk_usage(self._path.parent).free - _RESERVE_BYTES
        if wanted > free:
            raise ServiceUnavailable(
                "knowledge_base",
                f"A store needs {wanted >> 20} MB, and the temporary directory has room for {max(free, 0) >> 20} MB. "
                "Give the function a larger /tmp, or move the workspace to PostgreSQL.",
            )
        make_file(self._path)
        self._file = self._path.open("wb")
        return self._write

    def end(self) -> Generation:
        """Return what was unpacked. Raises `ServiceUnavailable` if it is not what was published."""
        file = self._generation.file
        if not self._unzip.eof or self._bytes != file.bytes or self._digest.hexdigest() != file.sha256:
            raise _damaged(self._generation.object.name)
        self._whole = True
        return self._generation

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            if not self._whole:
                self._path.unlink(missing_ok=True)

    def _write(self, packed: bytes) -> None:
        left = packed
        while left and not self._unzip.eof:
            piece = self._unzip.decompress(left, _CHUNK)
            left = self._unzip.unconsumed_tail
            self._bytes += len(piece)
            if self._bytes > self._generation.file.bytes:
                raise _damaged(self._generation.object.name)
            self._digest.update(piece)
            if self._file is not None:
                self._file.write(piece)


def _damaged(name: str) -> ServiceUnavailable:
    reason = f"{name} is not what was published. Go back with `cragside generations rollback`."
    return ServiceUnavailable("knowledge_base", reason)


async def publish_generation(
    objects: VersionedStore, workspace: str, folder: Path, before: Generation | None
) -> Generation:
    """Publish the store in a folder, which nobody has open, as the generation after `before`.

    The folder keeps the compact store alone. Raises `ObjectChanged` if `before` is not the newest one, and
    `ServiceUnavailable`.
    """
    await asyncio.to_thread(compacted, folder)
    return await publish_file(objects, workspace, folder / Path(file_of(workspace)).name, before)


async def publish_file(objects: VersionedStore, workspace: str, path: Path, before: Generation | None) -> Generation:
    """Publish a compact store as the generation after `before`. Raises as `publish_generation` does."""
    name, packed = object_of(workspace), path.with_name(f"{path.name}{_PACKED}")
    number = 1 if before is None else before.number + 1
    try:
        file = await asyncio.to_thread(_pack, path, packed)
        fresh = Generation(number, ObjectVersion(name, "", "", "", packed.stat().st_size), file)
        with packed.open("rb") as content:
            expected = None if before is None else before.object.etag
            await objects.replace(name, content, expected=expected, facts=fresh.facts)
        return fresh
    finally:
        packed.unlink(missing_ok=True)


def _pack(path: Path, packed: Path) -> BakedFile:
    make_file(packed)
    # Without a time in its head, equal files are packed into equal ones.
    with (
        path.open("rb") as content,
        packed.open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as to,
    ):
        shutil.copyfileobj(content, to, _CHUNK)
    return baked_file(path)


@dataclass(frozen=True, slots=True)
class _Look:
    """Has the folder of the generation that was the newest at a time. No etag means that there was none."""

    at: float
    etag: str
    folder: Path


class Generations(Home):
    """Keeps the newest generations of workspaces in a folder of this process.

    A workspace is looked at when it is used, at most every `seconds`. While the bucket does not answer, a generation
    that is there already is used. With `takes_documents`, changes go to an inbox, from where a writer takes them.
    """

    def __init__(
        self,
        folder: OwnFolder,
        backend: Backend,
        objects: VersionedStore,
        *,
        seconds: float,
        takes_documents: bool,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(folder.path, backend)
        self._own = folder
        self._versions = objects
        self._seconds = seconds
        self._takes_documents = takes_documents
        self._clock = clock
        self._known: dict[str, _Look] = {}
        self._made: set[Path] = set()
        self._looking: dict[str, asyncio.Task[None]] = {}

    @override
    async def ready(self, workspace: str | None = None) -> None:
        if workspace is None or self._is_fresh(workspace):
            return
        looking = self._looking.get(workspace)
        if looking is None:
            looking = self._looking[workspace] = asyncio.create_task(self._look(workspace))
            looking.add_done_callback(lambda _: self._looking.pop(workspace, None))
        await asyncio.shield(looking)

    @override
    def look_again(self, workspace: str) -> None:
        if (known := self._known.get(workspace)) is not None:
            self._known[workspace] = replace(known, at=-self._seconds)

    @override
    def folder_of(self, workspace: str) -> Path:
        known = self._known.get(workspace)
        return self.folder / workspace / "none" if known is None else known.folder

    @override
    async def names(self) -> list[str]:
        found = (_NAME.fullmatch(name) for name in await self._versions.names(WORKSPACES))
        return sorted(match["workspace"] for match in found if match and _is_workspace(match["workspace"]))

    @override
    def baked(self) -> None:
        return None

    @override
    async def sweep(self, used: Collection[Path] | None) -> None:
        if used is None or self._looking:
            return
        left = self._made - {look.folder for look in self._known.values()} - set(used)
        self._made -= left
        for folder in left:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    @override
    def is_replaced(self, folder: Path) -> bool:
        return folder not in {look.folder for look in self._known.values()}

    @override
    async def close(self) -> None:
        for looking in list(self._looking.values()):
            looking.cancel()
        await asyncio.gather(*self._looking.values(), return_exceptions=True)
        await asyncio.to_thread(self._own.remove)

    @property
    @override
    def read_only(self) -> bool:
        return True

    @property
    @override
    def takes_documents(self) -> bool:
        return self._takes_documents

    @override
    def refuse_baked(self) -> None:
        raise ReadOnlyStore(
            "This needs a store that can be written at once, and this one is published in generations. `cragside "
            "generations` shows, goes back and forgets; `cragside copy` moves a workspace to PostgreSQL."
        )

    @override
    def refuse_documents(self) -> None:
        if not self._takes_documents:
            raise ReadOnlyStore(
                "Documents cannot be brought: RAG_GENERATIONS is set without the RAG_QUEUE_URL that calls its writer."
            )

    def _is_fresh(self, workspace: str) -> bool:
        known = self._known.get(workspace)
        # The wall clock goes on while a function is frozen, and may be set back.
        return known is not None and 0 <= self._clock.time() - known.at < self._seconds

    async def _look(self, workspace: str) -> None:
        known, at = self._known.get(workspace), self._clock.time()
        try:
            self._known[workspace] = await self._newest(workspace, known, at)
        except ServiceUnavailable as error:
            if known is None or not _is_outage(error):
                raise
            _log.warning("An older generation of workspace %s is used: %s", workspace, error.message)
            self._known[workspace] = _Look(at, known.etag, known.folder)

    async def _newest(self, workspace: str, known: _Look | None, at: float) -> _Look:
        fresh = self.folder / workspace / os.urandom(8).hex()
        await asyncio.to_thread(self._own.make)
        path = fresh / Path(file_of(workspace)).name
        self._made.add(fresh)
        try:
            found = await fetch_generation(self._versions, workspace, path, known=known.etag if known else "")
        except NotFound:
            return _Look(at, "", self.folder / workspace / "none")
        if found is not None:
            return _Look(at, found.object.etag, fresh)
        self._made.discard(fresh)
        assert known is not None  # noqa: S101 (only a known one is unchanged)
        return _Look(at, known.etag, known.folder)


def _is_outage(error: ServiceUnavailable) -> bool:
    """Tell if the bucket failed, rather than what is in it."""
    cause = error.__cause__
    return isinstance(cause, ServiceUnavailable) and cause.component == "object_store"


def _is_workspace(name: str) -> bool:
    try:
        return store_name(name) == name
    except ValidationError:
        return False
