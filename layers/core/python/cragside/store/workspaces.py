"""Open, build, rename and remove workspaces in a home or a baked store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import DocumentKey, Stored
from cragside.domain.names import memory_of, owner_of
from cragside.ports.clock import Clock
from cragside.ports.files import ObjectStore
from cragside.ports.rag_repository import RagRepository
from cragside.store.backends.interface import Backend
from cragside.store.baked import Manifest
from cragside.store.errors import LeaseLost, LedgerDamaged, LedgerError, StoreFormatError, StoreRemoved
from cragside.store.home import Home
from cragside.store.leases import DOCUMENTS, GRAPH, Leases
from cragside.store.opening import StoreOpener, StorePool, damaged, out_of_reach, unopened

if TYPE_CHECKING:
    from cragside.store.knowledge_graph import KnowledgeGraph
    from cragside.store.ledger import Ledger
    from cragside.store.library import Library
    from cragside.store.open_store import Store, StoreAccess
    from cragside.store.part_indexer import PartIndexer


@asynccontextmanager
async def being_built(
    backend: Backend,
    folder: Path,
    open_ledger: "Callable[[], Awaitable[Ledger]]",
    *,
    lease: str,
    seconds: float,
    clock: Clock,
) -> AsyncIterator["Ledger | None"]:
    """The ledger of a store that nobody sweeps away meanwhile; None if somebody else holds the lease.

    In the end, the store is removed from its folder. Raises as `open_ledger` does.
    """
    while True:
        ledger = await open_ledger()
        leases, mine = Leases(ledger.driver, seconds, clock), False
        try:
            mine = await leases.take_if_free(lease) is not None
            yield ledger if mine else None
            return
        except StoreRemoved:
            if mine:
                raise
            # A sweep was faster than the lease.
        finally:
            await leases.close()
            ledger.driver.release()
            if mine:
                await backend.remove(folder)


# The lease of whoever builds a store that is to replace another one.
REBUILDING = "rebuilding"
# The lease of whoever builds a store anew, so that nobody else begins the same.
REINDEXING = "reindexing"
MOST_OPEN = 64
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """Gives a workspace's documents, passages and graph. An unknown one is empty; its first document makes its store.

    `work` is what a worker writes with. Where `read_only`, no document can be brought: `ReadOnlyStore` is raised.
    """

    name: str
    documents: "Library"
    passages: RagRepository
    graph: "KnowledgeGraph"
    work: "PartIndexer"
    read_only: bool


class Workspaces:
    """Opens workspaces below `home`, each of them once: their stores with `opener`, their passages with `repository`.

    A `home` that is a baked store is opened read-only. `sha256` pins it; with `objects` it is fetched from there first.
    `generations` take the place of the home, and are opened read-only too. For `most_open` and `patience` see
    `StorePool`.
    """

    def __init__(
        self,
        home: Path,
        *,
        opener: StoreOpener,
        repository: "Callable[[StoreAccess], RagRepository]",
        sha256: str | None = None,
        objects: ObjectStore | None = None,
        generations: Home | None = None,
        most_open: int = MOST_OPEN,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._backend = opener.backend
        self._home = generations or Home(home, opener.backend, sha256=sha256, objects=objects)
        self._opener = opener
        self._repository = repository
        self._pool = StorePool(most=most_open, patience=patience, clock=opener.clock)

    def folder(self, workspace: str) -> Path:
        """Return the folder of a workspace."""
        return self._home.folder_of(workspace)

    async def open(self, name: str) -> Workspace:
        # Importing LightRAG takes a second or two: whoever never opens a workspace should not wait for it.
        """Return a workspace. Its store is opened at the first use, and reading an unknown one leaves no trace.

        Each use may raise `ServiceUnavailable` or `ConfigurationError` when the store cannot be opened. A request
        that times out does not cancel the opening.
        """
        from cragside.store.knowledge_graph import KnowledgeGraph
        from cragside.store.library import Library
        from cragside.store.open_store import StoreAccess
        from cragside.store.part_indexer import PartIndexer

        access = StoreAccess(
            name,
            existing=partial(self._existing, name),
            searchable=partial(self._searchable, name),
            create=partial(self._created, name),
            check_writable=self._home.refuse_baked,
            check_open=self._home.refuse_documents,
        )
        documents, graph, work = Library(access), KnowledgeGraph(access), PartIndexer(access)
        closed = not self._home.takes_documents
        return Workspace(name, documents, self._repository(access), graph, work, read_only=closed)

    def version_at_hand(self, workspace: str) -> str | None:
        """Return `RagRepository.version` if it is known without waiting: of an open store on SQLite. Else None."""
        opening = self._pool.opening(workspace)
        if opening is None or not opening.done() or opening.cancelled() or opening.exception():
            return None
        try:
            return opening.result().ledger.driver.state_at_hand()
        except LedgerError:
            return None

    def look_again(self, workspace: str) -> None:
        """Have the next use of a workspace look for a newer generation, however short ago one has looked."""
        self._home.look_again(workspace)

    async def prepare(self, workspace: str) -> None:
        """Open a workspace, and have its embedding model loaded.

        Raises like any use, and if the embedding model does not answer.
        """
        if store := await self._existing(workspace):
            await store.embedder.prepare()
        if not self._home.read_only:
            await self._backend.sweep(self._home.folder)
        # Whoever prepares a server stays for as long as it runs.
        self._pool.leave()

    async def check(self, workspace: str, *, whole: bool = False) -> None:
        """Raises `ServiceUnavailable` when a workspace's store is damaged, with how and what to do.

        Cheap: it reports the last known state. With `whole` it reads everything that is stored.
        """
        store = await self._existing(workspace)
        if store and (how := await store.ledger.driver.damage(whole=whole)):
            raise damaged(workspace, how, read_only=store.ledger.driver.read_only).at(store.ledger.driver.place)

    async def names(self) -> list[str]:
        """Return the workspaces that have a store, in order."""
        await self._home.ready()
        return await self._home.names()

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        """Measure a workspace without opening it. Raises `ServiceUnavailable` when it is unreadable.

        `Stored.sizes` maps each of the `keys` that has a document to the document's size in bytes.
        """
        await self._home.ready(workspace)
        if not await self._has_store(workspace):
            return Stored()
        try:
            return await self._backend.stored(self.folder(workspace), keys)
        except LedgerError as error:
            raise unopened(workspace, error, read_only=False) from error.__cause__

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build a workspace anew with the configured embedding model. Returns the number of its sources.

        Exchanges count too, and `progress` is called with the name of each finished source. The old store serves, and
        keeps other writers out, until the new one is complete. When a source cannot be indexed the old store stays, and
        `ServiceUnavailable` names the source. Raises `ServiceUnavailable("reindex", ...)` while somebody else does the
        same, and `ReadOnlyStore` for a baked store.
        """
        await self._home.ready()
        self._home.refuse_baked()
        count = await self._rebuilt(workspace, progress)
        return count + await self._rebuilt(memory_of(workspace), progress)

    async def remove(self, workspace: str) -> bool:
        """Remove a workspace's documents and its memory, whoever has it open. False when it has no store.

        Its name can be used again at once. Raises `ReadOnlyStore` for a baked store, and `ServiceUnavailable`.
        """
        await self._home.ready()
        self._home.refuse_baked()
        await self._backend.sweep(self._home.folder)
        # Documents last: until they are gone, the workspace is listed, and removing it again completes it.
        names = memory_of(workspace), workspace
        removed = [await self._taken_away(name) for name in names]
        for name in names:  # what a reindex or a copy left that was killed
            await self._backend.remove(self._home.beside(name, "reindexing"))
            await self._backend.remove(self._home.beside(name, "copying"))
        return any(removed)

    async def disagreement(self, workspace: str) -> str:
        """Describe how another database's part of a workspace differs from the documents or the memory; "" for none.

        It differs when one of the databases was restored from a backup or emptied. `reindex` mends it.
        Raises `ServiceUnavailable`.
        """
        for name in (workspace, memory_of(workspace)):
            if not self._home.read_only and await self._has_store(name):
                try:
                    if found := await self._backend.disagreement(self.folder(name)):
                        return found
                except LedgerError as error:
                    raise unopened(name, error, read_only=False) from error.__cause__
        return ""

    async def close(self) -> None:
        """Close every workspace. One that fails to open or to close does not keep the others open."""
        await self._home.close()
        await self._pool.close()

    async def _rebuilt(self, workspace: str, progress: Callable[[str], None]) -> int:
        if not await self._has_store(workspace):
            return 0
        # Texts are read back without their vectors, so the old model may be out of reach.
        old = await self._opener.open(workspace, self.folder(workspace), check=False)
        try:
            async with old.leases.held_if_free(REINDEXING) as first:
                if first is None:
                    message = (
                        f"Workspace {owner_of(workspace)} is being built anew already. Try again when that has ended."
                    )
                    raise ServiceUnavailable("reindex", message)
                async with old.alone() as ledger:
                    count = await self._replaced(workspace, old, ledger, progress)
            await self._pool.drop(workspace)
            return count
        finally:
            await old.close()

    async def _replaced(self, workspace: str, old: "Store", ledger: "Ledger", progress: Callable[[str], None]) -> int:
        """Build a store beside the old one, which nobody else writes to, and put it in its place."""
        from cragside.store.part_indexer import rebuild

        scratch = self._home.beside(workspace, "reindexing")
        await self._backend.remove(scratch)
        opening, seconds = partial(self._opener.ledger, workspace, scratch), self._opener.lease_seconds
        clock = self._opener.clock
        async with being_built(
            self._backend, scratch, opening, lease=REBUILDING, seconds=seconds, clock=clock
        ) as building:
            if building is None:
                raise LeaseLost
            fresh = await self._opener.open(workspace, scratch)
            try:
                await fresh.embedder.prepare()
                count = await rebuild(old, fresh, progress)
                await ledger.replace_by(fresh.ledger)
            finally:
                await fresh.close()
            return count

    async def _taken_away(self, workspace: str) -> bool:
        if not await self._has_store(workspace):
            return False
        folder = self.folder(workspace)
        try:
            ledger = await self._backend.open_ledger(folder, workspace, search_text=self._opener.search_text)
        except LedgerError as error:
            if not isinstance(error, (LedgerDamaged, StoreFormatError)):
                raise unopened(workspace, error, read_only=False) from error.__cause__
            ledger = None  # nobody can write to it
        try:
            if ledger is None:
                await self._backend.take_away(folder)
            else:
                await self._taken_away_alone(ledger, folder)
        except OSError as error:
            raise out_of_reach(workspace, error) from error
        except LedgerError as error:
            raise unopened(workspace, error, read_only=False) from error.__cause__
        finally:
            if ledger is not None:
                ledger.driver.release()
        await self._pool.drop(workspace)
        return True

    async def _taken_away_alone(self, ledger: "Ledger", folder: Path) -> None:
        leases = Leases(ledger.driver, self._opener.lease_seconds, self._opener.clock)
        try:
            async with leases.held(GRAPH), leases.held(DOCUMENTS):
                await self._backend.take_away(folder)
        finally:
            await leases.close()

    async def _existing(self, workspace: str) -> "Store | None":
        await self._pool.sweep()
        await self._home.sweep(self._pool.folders())
        await self._home.ready(workspace)
        self._pool.use(workspace)
        opening = self._pool.opening(workspace)
        if opening is None:
            if manifest := self._home.baked():
                if (baked := self._home.baked_name(manifest, workspace)) is None:
                    return None
                opening = self._pool.start(workspace, partial(self._opened_baked, workspace, manifest, baked))
            elif not await self._has_store(workspace):
                return None
            else:
                opening = self._pool.opening(workspace)  # another task may have begun meanwhile
                opening = opening or self._pool.start(workspace, partial(self._opened, workspace))
        elif opening.done() and self._home.is_replaced(opening.result().folder):
            await self._pool.retire(workspace)
            return await self._existing(workspace)
        elif opening.done() and await _is_outdated(workspace, opening.result()):
            gone = not self._home.read_only and not await self._has_store(workspace)
            if self._pool.opening(workspace) is not opening:  # another task has replaced it meanwhile
                return await self._existing(workspace)
            if gone:
                await self._pool.drop(workspace)
                return None
            opening = self._pool.start(workspace, partial(self._reopened, workspace, opening.result()))
        return opening.result() if opening.done() else await asyncio.shield(opening)

    async def _searchable(self, workspace: str) -> "Store | None":
        opening = self._pool.opening(workspace)
        if opening is None or not opening.done() or not opening.result().searches_tell_replacement:
            return await self._existing(workspace)
        self._pool.use(workspace)
        return opening.result()

    async def _created(self, workspace: str) -> "Store":
        self._home.refuse_baked()
        if store := await self._existing(workspace):
            return store
        opening = self._pool.opening(workspace)
        opening = opening or self._pool.start(workspace, partial(self._opened, workspace))
        return await asyncio.shield(opening)

    async def _has_store(self, workspace: str) -> bool:
        try:
            return await self._backend.has_store(self.folder(workspace))
        except OSError as error:
            raise out_of_reach(workspace, error) from error

    async def _opened(self, workspace: str) -> "Store":
        return await self._opener.open(workspace, self.folder(workspace), read_only=self._home.read_only)

    async def _opened_baked(self, workspace: str, manifest: Manifest, baked: str) -> "Store":
        self._home.check(manifest, baked)
        return await self._opener.open(workspace, self.folder(workspace), read_only=True)

    async def _reopened(self, workspace: str, outdated: "Store") -> "Store":
        try:
            return await self._opened(workspace)
        finally:
            await outdated.close()


async def _is_outdated(workspace: str, store: "Store") -> bool:
    try:
        return await store.is_replaced()
    except LedgerError as error:
        raise unopened(workspace, error, read_only=False) from error.__cause__
