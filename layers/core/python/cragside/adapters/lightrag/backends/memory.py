"""Workspaces in memory, for tests and for what need not last."""

from collections.abc import Callable, Collection
from pathlib import Path

from typing_extensions import override

from cragside.adapters.lightrag.backends.interface import Backend, Storages
from cragside.adapters.lightrag.ledger.exchange import Batches
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.leases import REMOVED
from cragside.adapters.lightrag.ledger.memory.exchange import dump, load
from cragside.adapters.lightrag.ledger.memory.ledger import MemoryLedger
from cragside.adapters.lightrag.ledger.memory.sizes import stored_in
from cragside.adapters.lightrag.ledger.memory.tables import MemoryTables
from cragside.domain.indexing import DocumentKey, Stored
from cragside.ports.clock import SYSTEM_CLOCK, Clock


class MemoryBackend(Backend):
    """Keeps stores for as long as it lives itself. At one time one backend has a home."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._stores: dict[Path, MemoryTables] = {}

    @override
    def folder_of(self, home: Path, workspace: str) -> Path:
        return home / workspace

    @override
    async def names(self, home: Path) -> list[str]:
        return sorted(folder.name for folder in self._stores if folder.parent == home and folder.name[0] != ".")

    @override
    async def has_store(self, folder: Path) -> bool:
        return folder in self._stores

    @override
    async def open_ledger(
        self, folder: Path, workspace: str, *, search_text: Callable[[str], str], read_only: bool = False
    ) -> Ledger:
        memory = self._stores.get(folder) or MemoryTables()
        if not read_only:
            self._stores[folder] = memory
        MemoryTables.opened[str(folder)] = memory
        return MemoryLedger(memory, workspace, search_text, read_only=read_only, clock=self._clock)

    @override
    def storages(self) -> Storages:
        from cragside.adapters.lightrag.storages.memory import (
            MemoryGraphStorage,
            MemoryValueStorage,
            MemoryVectorStorage,
        )

        return Storages(MemoryValueStorage, MemoryVectorStorage, MemoryGraphStorage)

    @override
    async def stored(self, folder: Path, keys: Collection[DocumentKey]) -> Stored:
        return stored_in(self._stores[folder], keys)

    @override
    async def take_away(self, folder: Path) -> None:
        if memory := self._stores.pop(folder, None):
            memory.generation = REMOVED

    @override
    async def sweep(self, home: Path) -> None:
        """Nothing is left over in memory."""

    @override
    async def remove(self, folder: Path) -> None:
        self._stores.pop(folder, None)

    @override
    def dump(self, folder: Path) -> Batches:
        return dump(self._stores[folder])

    @override
    async def load(self, folder: Path, workspace: str, batches: Batches, *, search_text: Callable[[str], str]) -> None:
        await load(self._stores[folder], workspace, batches, search_text)
