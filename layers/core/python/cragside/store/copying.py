"""Copy workspaces between places, whatever database each of them has."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cragside.domain.errors import NotFound, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Task
from cragside.domain.names import is_memory, memory_of, owner_of, spoken
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.backends.interface import Backend
from cragside.store.exchange import DocumentRow, SearchText
from cragside.store.home import Home
from cragside.store.leases import DOCUMENTS, GRAPH, Leases
from cragside.store.library import unfinished
from cragside.store.workspaces import being_built

if TYPE_CHECKING:
    from cragside.store.exchange import Batches
    from cragside.store.ledger import Ledger

# The lease of whoever fills a store that is to replace another one.
_COPYING = "copying"


@dataclass(frozen=True, slots=True)
class Place:
    """A home of workspaces in a database."""

    home: Home
    backend: Backend

    async def workspaces(self) -> list[str]:
        """List the workspaces that have documents or a memory here, in order."""
        await self.home.ready()
        return sorted({owner_of(name) for name in await self.home.names()})

    async def has(self, store: str) -> bool:
        """Return True if a workspace, or its memory, has a store here."""
        await self.home.ready(store)
        if manifest := self.home.baked():
            return self.home.baked_name(manifest, store) is not None
        return await self.backend.has_store(self.home.folder_of(store))

    async def holds(self, store: str) -> int:
        """Count the documents of a store, 0 without a store."""
        if not await self.has(store):
            return 0
        return (await self.backend.stored(self.home.folder_of(store), ())).documents

    async def unfinished(self, store: str, *, search_text: SearchText) -> list[Task]:
        """List the tasks that a store still waits for, without what was given up. It needs no model."""
        if not await self.has(store):
            return []
        ledger = await self.backend.open_ledger(self.home.folder_of(store), store, search_text=search_text)
        try:
            return await unfinished(ledger)
        finally:
            ledger.driver.release()


@dataclass(frozen=True, slots=True)
class Copier:
    """Copies workspaces, each with its memory, from one place to another."""

    source: Place
    target: Place
    search_text: SearchText
    lease_seconds: float
    clock: Clock = SYSTEM_CLOCK

    async def copy(self, workspace: str, *, replace: bool, progress: Callable[[int], None], memory: bool = True) -> int:
        """Copy a workspace, without `memory` its documents alone. Return the count of documents and exchanges.

        The source is read as it is at one moment, and may change meanwhile. The target stays as it is until everything
        is copied; then each of its two stores is replaced whole. `progress` is told how many documents are copied.
        Raises `NotFound`, `ValidationError` when the target has this workspace already and `replace` is not set, and
        `ServiceUnavailable`.
        """
        await self.source.home.ready()
        self.target.home.refuse_baked()
        names = [memory_of(workspace), workspace] if memory else [workspace]
        stores = [name for name in names if await self.source.has(name)]
        if not stores:
            raise NotFound(f"There is no workspace {workspace} to copy. Check --from and --workspace.")
        if not replace:
            for name in (workspace, memory_of(workspace)):
                await self._refuse_existing(name)
        # What the source has none of is replaced by nothing.
        stores = [name for name in names if name in stores or await self.target.has(name)]
        count = _Count(progress)
        async with AsyncExitStack() as stack:
            filled = {name: await stack.enter_async_context(self._filled(name, count)) for name in stores}
            for name, fresh in filled.items():
                await self._put_in_place(name, fresh, replace=replace)
        return count.documents

    async def _refuse_existing(self, name: str) -> None:
        if found := await self.target.holds(name):
            held = f"{found} {'exchanges' if is_memory(name) else 'documents'}"
            raise ValidationError(
                f"The target has a workspace {owner_of(name)} already, with {held}. Pass --replace to replace it."
            )

    @asynccontextmanager
    async def _filled(self, name: str, count: "_Count") -> AsyncIterator["Ledger"]:
        """Fill a store beside those of workspaces with what the source has, and remove it in the end."""
        backend = self.target.backend
        scratch = self.target.home.beside(name, "copying")
        opening, seconds = partial(backend.open_ledger, scratch, name, search_text=self.search_text), self.lease_seconds
        # First what a copy left that was killed.
        for leftover in (await backend.has_store(scratch), False):
            async with being_built(
                backend, scratch, opening, lease=_COPYING, seconds=seconds, clock=self.clock
            ) as ledger:
                if ledger is None:
                    raise ServiceUnavailable(
                        "knowledge_base",
                        f"Another process is copying workspace {spoken(name)} to this place. Wait for it to end; if it "
                        f"was killed, try again in {seconds:.0f} seconds.",
                    )
                if not leftover:
                    await self._fill(name, count)
                    yield ledger
                    return

    async def _fill(self, name: str, count: "_Count") -> None:
        if not await self.source.has(name):
            return
        if manifest := self.source.home.baked():
            self.source.home.check(manifest, self.source.home.baked_name(manifest, name) or name)
        scratch = self.target.home.beside(name, "copying")
        dump = self.source.backend.dump(self.source.home.folder_of(name))
        async with aclosing(dump), aclosing(count.counted(dump)) as rows:
            await self.target.backend.load(scratch, rows, search_text=self.search_text)

    async def _put_in_place(self, name: str, fresh: "Ledger", *, replace: bool) -> None:
        folder = self.target.home.folder_of(name)
        ledger = await self.target.backend.open_ledger(folder, name, search_text=self.search_text)
        leases = Leases(ledger.driver, self.lease_seconds, self.clock)
        try:
            async with leases.held(GRAPH) as graph, leases.held(DOCUMENTS) as documents:
                if not replace:  # somebody may have written meanwhile
                    await self._refuse_existing(name)
                await ledger.with_leases(graph, documents).replace_by(fresh)
                await ledger.driver.flush()
        finally:
            await leases.close()
            ledger.driver.release()


class _Count:
    """Counts the documents that go by."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self.documents = 0
        self._progress = progress

    async def counted(self, batches: "Batches") -> "Batches":
        async for batch in batches:
            self.documents += sum(isinstance(row, DocumentRow) and row.state == "current" for row in batch)
            self._progress(self.documents)
            yield batch
