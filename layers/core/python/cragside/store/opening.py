"""Open the store of a workspace with the model that built it, and close stores that are not in use."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cragside.domain.context import CountTokens
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.names import owner_of, spoken
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.embedder import Embedder
from cragside.ports.models import LanguageModel
from cragside.store.backends.interface import Backend
from cragside.store.errors import LedgerDamaged, LedgerError

if TYPE_CHECKING:
    from cragside.store.chunking import Chunker
    from cragside.store.ledger import Ledger
    from cragside.store.open_store import Store

    Open = Callable[[], Coroutine[Any, Any, Store]]

# No request takes longer. A task that has not asked for so long has left its workspace.
_LONGEST_SECONDS = 900
_LOOK_SECONDS = 0.5


class StoreUsers:
    """Notes that a task uses the workspace that it asked for last, until it ends or asks for another one."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._of: dict[asyncio.Task[Any], str] = {}
        self._users: dict[str, dict[asyncio.Task[Any], float]] = {}
        self._freed = asyncio.Event()

    def add(self, workspace: str) -> None:
        """Note that the current task uses this workspace from now on."""
        task = asyncio.current_task()
        if task is None:
            return
        former = self._of.get(task)
        if former is None:
            task.add_done_callback(self.remove)
        elif former != workspace:
            self._forget(task, former)
        self._of[task] = workspace
        self._users.setdefault(workspace, {})[task] = self._clock.monotonic()

    def remove(self, task: asyncio.Task[Any] | None = None) -> None:
        """Note that the task, or the current one, uses no workspace any more."""
        task = task or asyncio.current_task()
        if task is not None and (workspace := self._of.pop(task, None)) is not None:
            task.remove_done_callback(self.remove)
            self._forget(task, workspace)

    def of(self, workspace: str) -> set[asyncio.Task[Any]]:
        """Return the tasks that use the workspace."""
        return set(self._users.get(workspace, ()))

    def any(self, workspace: str) -> bool:
        """Return True if a task uses the workspace."""
        latest = max(self._users.get(workspace, {}).values(), default=None)
        return latest is not None and self._clock.monotonic() - latest < _LONGEST_SECONDS

    async def change(self) -> None:
        """Wait until a task has left its workspace, or for a moment."""
        self._freed.clear()
        await self._clock.wait_for(self._freed, _LOOK_SECONDS)

    def _forget(self, task: asyncio.Task[Any], workspace: str) -> None:
        users = self._users[workspace]
        del users[task]
        if not users:
            del self._users[workspace]
        self._freed.set()


# How long those who need a place wait for a store to close.
_CLOSING_SECONDS = 1.0


class StorePool:
    """Keeps at most `most` stores open. Each takes descriptors, and memory for its vectors.

    If all are in use, a caller waits up to `patience` seconds for one.
    """

    def __init__(self, *, most: int, patience: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._most = most
        self._patience = patience
        self._open: dict[str, asyncio.Task[Store]] = {}
        # The workspaces that have a place, least recently asked for first. The others wait for one.
        self._admitted: dict[str, None] = {}
        self._users = StoreUsers(clock)
        self._closing: set[asyncio.Task[None]] = set()
        # Stores that were replaced, with the tasks that may be using them.
        self._retired: list[tuple[Store, set[asyncio.Task[Any]]]] = []
        self._door = asyncio.Lock()
        self._closed = False

    def use(self, workspace: str) -> None:
        """Note that the current task uses the workspace, until it ends or uses another one."""
        self._users.add(workspace)
        if workspace in self._admitted:  # now the last one
            del self._admitted[workspace]
            self._admitted[workspace] = None

    def leave(self) -> None:
        """Note that the current task uses no workspace any more."""
        self._users.remove()

    def opening(self, workspace: str) -> "asyncio.Task[Store] | None":
        """Return the store that is open, or is being opened."""
        return self._open.get(workspace)

    def start(self, workspace: str, open_store: "Open") -> "asyncio.Task[Store]":
        """Open a store when there is a place for it. A request that gives up leaves the opening to go on.

        Raises `ServiceUnavailable` once the pool is closed.
        """
        if self._closed:
            raise ServiceUnavailable("knowledge_base", "The stores are closed.")
        task = self._open[workspace] = asyncio.create_task(self._in_turn(workspace, open_store))
        task.add_done_callback(partial(self._forget_failure, workspace))
        return task

    async def drop(self, workspace: str) -> None:
        """Close a store, so that the next request opens it anew."""
        if opened := self._open.pop(workspace, None):
            self._admitted.pop(workspace, None)
            await (await opened).close()

    async def retire(self, workspace: str) -> None:
        """Have the next request open a store anew. Tasks that are using the open one go on with it."""
        if opened := self._open.pop(workspace, None):
            self._admitted.pop(workspace, None)
            self._retired.append((await opened, self._users.of(workspace)))
            await self.sweep()

    async def sweep(self) -> None:
        """Close retired stores that no task uses any more."""
        ended = [store for store, tasks in self._retired if all(task.done() for task in tasks)]
        self._retired = [(store, tasks) for store, tasks in self._retired if store not in ended]
        for store in ended:
            await store.close()

    def folders(self) -> "set[Path] | None":
        """Return the folders of the stores that are open. None while one is being opened."""
        if not all(task.done() for task in self._open.values()):
            return None
        return {store.folder for store in (*(task.result() for task in self._open.values()), *dict(self._retired))}

    async def close(self) -> None:
        """Close every store. One that fails to open or to close does not keep the others open."""
        self._closed = True
        self._admitted.clear()
        openings = [self._open.popitem()[1] for _ in range(len(self._open))]
        opened = await asyncio.gather(*openings, return_exceptions=True)
        stores = [*(store for store in opened if not isinstance(store, BaseException)), *(s for s, _ in self._retired)]
        closing: list[Awaitable[None]] = [store.close() for store in stores]
        ended = await asyncio.gather(*closing, *self._closing, return_exceptions=True)
        failures = [failure for failure in ended if failure is not None]
        if failures:
            raise failures[0]

    async def _in_turn(self, workspace: str, open_store: "Open") -> "Store":
        """Open a store once it has a place. Workspaces get places in the order in which they asked."""
        if workspace in self._admitted:
            return await open_store()
        try:
            async with asyncio.timeout(self._patience), self._door:
                while workspace not in self._admitted:
                    if len(self._admitted) < self._most or await self._closed_one():
                        self._admitted[workspace] = None
                    else:
                        await self._users.change()
        except TimeoutError:
            raise ServiceUnavailable(
                "knowledge_base", "Too many workspaces are in use at the moment. Try again in a few seconds."
            ) from None
        return await open_store()

    async def _closed_one(self) -> bool:
        """Close the store that nobody has asked for in the longest time. False when all are in use.

        A store that gives disk space back takes long to close, so any other is closed rather than it.
        """
        idle = [workspace for workspace in self._admitted if self._is_idle(workspace)]
        if not idle:
            return False
        quick = (workspace for workspace in idle if not self._open[workspace].result().ledger.driver.is_tidying)
        workspace = next(quick, idle[0])
        closing = asyncio.create_task(self._open.pop(workspace).result().close())
        del self._admitted[workspace]
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        # Whoever waits may give up. The store is closed all the same, which takes minutes if it makes an index.
        await asyncio.wait([closing], timeout=None if len(self._closing) > self._most else _CLOSING_SECONDS)
        return True

    def _is_idle(self, workspace: str) -> bool:
        opening = self._open[workspace]
        opened = opening.done() and not opening.cancelled() and opening.exception() is None
        return opened and not self._users.any(workspace) and opening.result().workers == 0

    def _forget_failure(self, workspace: str, opening: "asyncio.Task[Store]") -> None:
        if opening.cancelled() or opening.exception():
            self._open.pop(workspace, None)
            self._admitted.pop(workspace, None)


OpenEmbedder = Callable[[str | None], Awaitable[Embedder]]
# A workspace's longest passage and what neighbours share, in tokens; asked for each document.
Chunking = Callable[[str], Awaitable[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class StoreOpener:
    """Opens stores in `backend`. `open_embedder` gives a model by name, or for None the model for a new store.

    `search_text` gives what full-text search sees of a text, `asked_text` what it looks for to answer a question.
    A store is opened without asking its model, so that whatever needs no vectors works while the model is down.
    """

    backend: Backend
    embedding_model: str | None
    open_embedder: OpenEmbedder
    model: LanguageModel
    search_text: Callable[[str], str]
    asked_text: Callable[[str], str]
    count_tokens: CountTokens
    chunking: Chunking
    parallel: int
    part_passages: int
    lease_seconds: float
    question_seconds: float
    clock: Clock = SYSTEM_CLOCK

    async def open(self, workspace: str, folder: Path, *, check: bool = True, read_only: bool = False) -> "Store":
        """Open the store of a folder, which is made unless it is only read.

        `check` compares the embedding models and the storages. Raises `ServiceUnavailable` and `ConfigurationError`.
        """
        # Importing LightRAG takes a second or two.
        from cragside.store.embeddings import CachedEmbedder
        from cragside.store.engine import build_engine
        from cragside.store.open_store import Store

        ledger = await self.ledger(workspace, folder, read_only=read_only)
        try:
            stored, generation = await ledger.driver.opened_with()
            anew = f", or build the store anew: cragside reindex --workspace {owner_of(workspace)}"
            remedy = "" if read_only else anew
            model = await self._embedder(stored if check else None, workspace, remedy)
            embedder = CachedEmbedder(model, ledger, self.question_seconds)
            storages = self.backend.storages()
            if check:
                _check_storages(workspace, ledger.driver.storages, storages.names)
            place = self.backend.place_of(folder, generation)
            engine = build_engine(
                place,
                folder=self.backend.files_of(folder),
                workspace=_lock_name(place),
                storages=storages,
                embedder=embedder,
                model=self.model,
                asked_text=self.asked_text,
                parallel=self.parallel,
            )
            await engine.initialize_storages()
        except BaseException as error:
            ledger.driver.release()
            if isinstance(error, LedgerError):
                raise unopened(workspace, error, read_only=read_only) from error.__cause__
            raise
        return Store(
            engine,
            ledger,
            workspace=workspace,
            folder=folder,
            generation=generation,
            embedder=embedder,
            chunker=partial(self._chunker, workspace),
            count_tokens=self.count_tokens,
            part_passages=self.part_passages,
            lease_seconds=self.lease_seconds,
            clock=self.clock,
        )

    async def _chunker(self, workspace: str) -> "Chunker":
        from cragside.store.chunking import chunker

        return chunker(self.count_tokens, *await self.chunking(workspace))

    async def ledger(self, workspace: str, folder: Path, *, read_only: bool = False) -> "Ledger":
        """Open the ledger of a folder alone. Raises `ServiceUnavailable`."""
        try:
            return await self.backend.open_ledger(folder, workspace, search_text=self.search_text, read_only=read_only)
        except LedgerError as error:
            raise unopened(workspace, error, read_only=read_only) from error.__cause__
        except OSError as error:
            raise out_of_reach(workspace, error) from error

    async def _embedder(self, stored: str | None, workspace: str, remedy: str) -> Embedder:
        if stored is None:
            return await self.open_embedder(self.embedding_model)
        if self.embedding_model is None:
            return await self.open_embedder(stored)
        wanted = await self.open_embedder(self.embedding_model)
        if wanted.name != stored:
            raise ConfigurationError(
                f"Workspace {spoken(workspace)} was built with the embedding model {stored}, but RAG_EMBEDDING_MODEL "
                f"names {wanted.name}. Unset the variable{remedy}"
            )
        return wanted


def _check_storages(workspace: str, built: Mapping[str, str], chosen: Mapping[str, str]) -> None:
    for role, name in built.items():
        if chosen[role] != name:
            setting = f"RAG_{role.upper()}_STORAGE"
            raise ConfigurationError(
                f"Workspace {spoken(workspace)} was built with {name}, but {setting} is {chosen[role]}. Set it to "
                f"{name}, or build the store anew: cragside reindex --workspace {owner_of(workspace)}",
                variable=setting,
            )


def unopened(workspace: str, error: LedgerError, *, read_only: bool) -> ServiceUnavailable:
    """Return the error for a store whose ledger fails."""
    if isinstance(error, LedgerDamaged):
        return damaged(workspace, error.reason, read_only=read_only)
    return ServiceUnavailable("knowledge_base", f"The store of workspace {spoken(workspace)} {error.unusable}.")


def damaged(workspace: str, how: str, *, read_only: bool) -> ServiceUnavailable:
    """Return the error for a damaged store."""
    remedy = "Bake it again." if read_only else "Stop cragside, move its folder away, and ingest again."
    message = f"The store of workspace {spoken(workspace)} is damaged ({how}). {remedy}"
    return ServiceUnavailable("knowledge_base", message)


def out_of_reach(workspace: str, error: OSError) -> ServiceUnavailable:
    """Return the error for a store that the system does not let this process open."""
    message = f"The store of workspace {spoken(workspace)} cannot be opened: {error.strerror}. Check RAG_HOME."
    return ServiceUnavailable("knowledge_base", message)


def _lock_name(place: str) -> str:
    """Name LightRAG's locks, which it keeps by workspace for the whole process, differently in each place."""
    return hashlib.sha256(place.encode()).hexdigest()[:16]
