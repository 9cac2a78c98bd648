"""Workspaces in SQLite files: a folder and a file for each."""

import asyncio
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from typing_extensions import override

from cragside.databases.private_files import make_folder
from cragside.domain.indexing import DocumentKey, Stored
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.backends.interface import Backend, Storages
from cragside.store.ledger.exchange import Batches
from cragside.store.ledger.ledger import Ledger
from cragside.store.ledger.sqlite.database import FILE_NAME
from cragside.store.ledger.sqlite.folders import WorkspaceFolders, check_store_file

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
        from cragside.store.ledger.sqlite.ledger import SqliteLedger

        check_store_file(folder)
        with nullcontext() if read_only else _at_rest(folder.parent, alone=False):
            return SqliteLedger.open(folder, workspace, search_text=search_text, read_only=read_only, clock=self._clock)

    @override
    def storages(self) -> Storages:
        from cragside.store.storages.sqlite.graph import SqliteGraphStorage
        from cragside.store.storages.sqlite.kv import SqliteKVStorage
        from cragside.store.storages.sqlite.vectors import SqliteVectorStorage

        return Storages(SqliteKVStorage, SqliteVectorStorage, SqliteGraphStorage)

    @override
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        from cragside.store.ledger.sqlite.driver import stored_in

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
        from cragside.store.ledger.sqlite.exchange import dump

        return dump(folder)

    @override
    async def load(self, folder: Path, workspace: str, batches: Batches, *, search_text: Callable[[str], str]) -> None:
        from cragside.store.ledger.sqlite.exchange import load

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
