"""Workspaces in SQLite files: a folder and a file for each."""

import asyncio
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from typing_extensions import override

from cragside.adapters.lightrag.backends.interface import Backend, Storages
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.sqlite.database import FILE_NAME
from cragside.adapters.lightrag.ledger.sqlite.folders import WorkspaceFolders, check_store_file
from cragside.domain.indexing import DocumentKey, Stored


class SqliteBackend(Backend):
    """Ledger and storages of a workspace share one file and its transactions."""

    def __init__(self) -> None:
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
        from cragside.adapters.lightrag.ledger.sqlite.ledger import SqliteLedger

        check_store_file(folder)
        return SqliteLedger.open(folder, workspace, search_text=search_text, read_only=read_only)

    @override
    def storages(self) -> Storages:
        from cragside.adapters.lightrag.storages.sqlite.graph import SqliteGraphStorage
        from cragside.adapters.lightrag.storages.sqlite.kv import SqliteKVStorage
        from cragside.adapters.lightrag.storages.sqlite.vectors import SqliteVectorStorage

        return Storages(SqliteKVStorage, SqliteVectorStorage, SqliteGraphStorage)

    @override
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        from cragside.adapters.lightrag.ledger.sqlite.passages import stored_in

        return await asyncio.to_thread(stored_in, folder / FILE_NAME, keys)

    @override
    async def remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def _folders(self, home: Path) -> WorkspaceFolders:
        return self._homes.setdefault(home, WorkspaceFolders(home))
