"""Workspaces in SQLite files: a folder and a file for each."""

import asyncio
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from typing_extensions import override

from cragside.databases.private_files import make_folder
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.indexing import DocumentKey, Stored
from cragside.domain.names import store_name
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.backends.interface import Backend, Storages
from cragside.store.exchange import Batches
from cragside.store.ledger import Ledger
from cragside.store.sqlite.database import FILE_NAME, Database


class WorkspaceFolders:
    """Finds the folder of each workspace. An unreadable folder affects only its own workspace.

    Names are in lower case. A folder whose name has capitals belongs to its workspace as long as there is only one.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        # The folders with capitals in their names, by workspace, and when the home was looked through for them.
        self._capitals: tuple[int, dict[str, list[str]]] | None = None

    def of(self, workspace: str) -> Path:
        """Return the folder of a workspace, whether or not it is there.

        Raises `ServiceUnavailable` when two stores have this name but for the case.
        """
        own = self._home / workspace
        others = [self._home / name for name in self._with_capitals().get(workspace, ()) if name != workspace]
        stores = [folder for folder in (own, *others) if _holds_store(folder)]
        distinct = {_identity(folder): folder for folder in reversed(stores)}
        if len(distinct) > 1:
            names = " and ".join(sorted(folder.name for folder in distinct.values()))
            raise ServiceUnavailable(
                "knowledge_base",
                f"Workspace {workspace} has two stores, {names}: names that differ in case only are one workspace. "
                "Rename one of these folders in RAG_HOME to another workspace's name.",
            )
        return next(iter(distinct.values()), own)

    def names(self) -> list[str]:
        """List the workspaces that have a store, in order."""
        return sorted({name for entry in self._entries() if (name := _name_of(entry)) and _holds_store(entry)})

    def refused(self) -> list[str]:
        """Folders with a store whose name no workspace can have any more, in order."""
        return sorted(entry.name for entry in self._entries() if not _name_of(entry) and _holds_store(entry))

    def _with_capitals(self) -> dict[str, list[str]]:
        try:
            changed = self._home.stat().st_mtime_ns
        except OSError:
            return {}
        if self._capitals is None or self._capitals[0] != changed:
            found: dict[str, list[str]] = {}
            for entry in self._entries():
                if entry.name != entry.name.lower() and (name := _name_of(entry)):
                    found.setdefault(name, []).append(entry.name)
            self._capitals = changed, found
        return self._capitals[1]

    def _entries(self) -> list[Path]:
        """Without what begins with a dot, which is no workspace's."""
        try:
            return [self._home / name for name in os.listdir(self._home) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise ServiceUnavailable(
                "knowledge_base", f"The folder of the stores cannot be read: {error.strerror}. Check RAG_HOME."
            ) from error


def check_store_file(folder: Path) -> None:
    """Raises `ServiceUnavailable` when something else than a folder, or than a store's file, has its place."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(folder.stat().st_mode):
            raise ServiceUnavailable("knowledge_base", _in_the_way(folder.name, "folder"))
        if not stat.S_ISREG((folder / FILE_NAME).stat().st_mode):
            raise ServiceUnavailable("knowledge_base", _in_the_way(f"{folder.name}/{FILE_NAME}", "file"))


def _in_the_way(name: str, wanted: str) -> str:
    return f"{name} in RAG_HOME is not a {wanted}. Move it elsewhere: cragside needs this path for a workspace's store."


def _name_of(folder: Path) -> str:
    """Return the workspace of a folder, "" for none."""
    try:
        return store_name(folder.name)
    except ValidationError:
        return ""


def _holds_store(folder: Path) -> bool:
    """Return True if something has the place of the store's file, or if the folder cannot be read."""
    try:
        (folder / FILE_NAME).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _identity(folder: Path) -> object:
    """Equal for names of one folder, on a disk that does not tell cases apart."""
    try:
        status = folder.stat()
    except OSError:
        return folder.name
    return status.st_dev, status.st_ino


# The leading dot: no workspace can have this name.
_REMOVED = ".removed-"


class SqliteBackend(Backend):
    """Ledger and storages of a workspace share one file and its transactions."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._homes: dict[Path, WorkspaceFolders] = {}

    @override
    def folder_of(self, home: Path, workspace: str) -> Path:
        return self._folders(home).of(workspace)

    @override
    async def names(self, home: Path) -> list[str]:
        return self._folders(home).names()

    @override
    async def has_store(self, folder: Path) -> bool:
        check_store_file(folder)
        return (folder / FILE_NAME).exists()

    @override
    async def open_ledger(
        self, folder: Path, workspace: str, *, search_text: Callable[[str], str], read_only: bool = False
    ) -> Ledger:
        from cragside.store.sqlite.driver import SqliteDriver

        check_store_file(folder)
        with nullcontext() if read_only else _at_rest(folder.parent, alone=False):
            driver = SqliteDriver(Database.acquire(folder, read_only=read_only), self._clock)
            return Ledger(driver, workspace, search_text)

    @override
    def storages(self) -> Storages:
        from cragside.store.sqlite.storages import SqliteGraphStorage, SqliteKVStorage
        from cragside.store.sqlite.vectors import SqliteVectorStorage

        return Storages(SqliteKVStorage, SqliteVectorStorage, SqliteGraphStorage)

    @override
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        from cragside.store.sqlite.driver import stored_in

        return await asyncio.to_thread(stored_in, folder / FILE_NAME, keys)

    @override
    async def take_away(self, folder: Path) -> None:
        await asyncio.to_thread(_take_away, folder)

    @override
    async def sweep(self, home: Path) -> None:
        await asyncio.to_thread(_sweep, home)

    @override
    async def remove(self, folder: Path) -> None:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    @override
    def dump(self, folder: Path) -> Batches:
        from cragside.store.sqlite.exchange import dump

        return dump(folder)

    @override
    async def load(self, folder: Path, batches: Batches, *, search_text: Callable[[str], str]) -> None:
        from cragside.store.sqlite.exchange import load

        await load(folder, batches, search_text, self._clock)

    def _folders(self, home: Path) -> WorkspaceFolders:
        return self._homes.setdefault(home, WorkspaceFolders(home))


def _take_away(folder: Path) -> None:
    away = folder.with_name(f"{_REMOVED}{uuid.uuid4().hex}")
    with _at_rest(folder.parent, alone=True):
        folder.rename(away)
    shutil.rmtree(away, ignore_errors=True)


def _sweep(home: Path) -> None:
    for left in home.glob(f"{_REMOVED}*"):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _at_rest(home: Path, *, alone: bool) -> Iterator[None]:
    """Keep openings of stores and removals apart.

    SQLite opens a file and its log by path, one after the other. They must not be of two stores. Windows refuses to
    rename the folder of an open file, so that it needs no lock.
    """
    if os.name != "posix":
        yield
        return
    import fcntl

    make_folder(home)
    descriptor = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
