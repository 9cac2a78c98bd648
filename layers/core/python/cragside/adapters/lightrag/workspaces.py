"""The embedded store: a folder a workspace, opened once, with the embedding model that built it."""

import asyncio
import hashlib
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cragside.adapters.lightrag.baked import BakedRepository
from cragside.adapters.lightrag.catalogue import stored_in
from cragside.adapters.lightrag.database import FILE_NAME, Database
from cragside.adapters.lightrag.folders import check_store_file
from cragside.adapters.lightrag.home import Home
from cragside.adapters.lightrag.leases import Leases
from cragside.adapters.lightrag.manifest import Manifest
from cragside.adapters.lightrag.schema import StoreFormatError
from cragside.adapters.lightrag.unborn import UnbornRepository
from cragside.adapters.sqlite_failures import is_damage, told, unusable
from cragside.domain.context import CountTokens
from cragside.domain.errors import ConfigurationError, CragsideError, ServiceUnavailable
from cragside.domain.indexing import DocumentKey, Stored
from cragside.domain.memory_name import is_memory, memory_of, owner_of, spoken
from cragside.ports.embedder import Embedder
from cragside.ports.knowledge_graph import KnowledgeGraph
from cragside.ports.language_model import LanguageModel
from cragside.ports.library import Library
from cragside.ports.object_store import ObjectStore
from cragside.ports.part_indexer import PartIndexer
from cragside.ports.rag_repository import RagRepository
from cragside.ports.relevance_grader import RelevanceGrader

if TYPE_CHECKING:
    from cragside.adapters.lightrag.repository import Keywords, LightRagRepository
    from cragside.adapters.lightrag.store import Store

    Opened = LightRagRepository | BakedRepository

_MOST_OPEN = 64
_PATIENCE_SECONDS = 30.0

OpenEmbedder = Callable[[str | None], Awaitable[Embedder]]
# A workspace's longest passage and what neighbours share, in tokens; asked for each document.
Chunking = Callable[[str], tuple[int, int]]


class EmbeddedWorkspaces:
    """Opens workspaces below `home`. `open_embedder` gives a model by name, or the one for a new store for None.

    A store is opened without asking its model, so that whatever needs no vectors can be done while that is down.
    A `home` that is a baked store is opened read-only. `sha256` pins it; with `objects` it is fetched from there first.
    At most `most_open` stores are open at once, each of which takes descriptors, and memory for its vectors. Whoever
    needs another one waits for `patience` seconds at most until one of these is not in use.
    """

    def __init__(
        self,
        home: Path,
        *,
        embedding_model: str | None,
        open_embedder: OpenEmbedder,
        model: LanguageModel,
        ranker: RelevanceGrader,
        keywords_of: "Callable[[str], Keywords]",
        search_text: Callable[[str], str],
        count_tokens: CountTokens,
        chunking: Chunking,
        parallel: int,
        saved_queries: int,
        part_passages: int = 20,
        sha256: str | None = None,
        objects: ObjectStore | None = None,
        most_open: int = _MOST_OPEN,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._home = Home(home, sha256=sha256, objects=objects)
        self._embedding_model = embedding_model
        self._open_embedder = open_embedder
        self._model = model
        self._ranker = ranker
        self._keywords_of = keywords_of
        self._search_text = search_text
        self._count_tokens = count_tokens
        self._chunking = chunking
        self._parallel = parallel
        self._saved_queries = saved_queries
        self._part_passages = part_passages
        self._most_open = most_open
        self._patience = patience
        self._open: dict[str, asyncio.Task[Opened]] = {}
        # Those that may be open, of which the others wait. Least recently asked for first.
        self._admitted: dict[str, None] = {}
        self._leases = Leases()
        self._closing: set[asyncio.Task[None]] = set()
        self._door = asyncio.Lock()

    def folder(self, workspace: str) -> Path:
        """Where a workspace is stored."""
        return self._home.folder_of(workspace)

    async def repository(self, workspace: str) -> RagRepository:
        """The workspace's repository, opened at its first use; an unknown workspace is empty and is not made by asking.

        A request whose time is up leaves; the opening goes on and serves the next one.
        """
        if found := await self._existing(workspace):
            return found
        unborn = UnbornRepository(
            workspace, find=partial(self._existing, workspace), create=partial(self._created, workspace)
        )
        return BakedRepository(unborn, self._home.refusal) if self._home.baked() else unborn

    async def library(self, workspace: str) -> Library:
        """The workspace's documents; an unknown workspace has none, and accepting one makes it."""
        from cragside.adapters.lightrag.library import LightRagLibrary

        find, create = partial(self._store, workspace), partial(self._new_store, workspace)
        return LightRagLibrary(find, create, self._home.refuse_baked)

    async def part_indexer(self, workspace: str) -> PartIndexer:
        """What a worker writes a workspace with."""
        from cragside.adapters.lightrag.part_indexer import LightRagPartIndexer

        return LightRagPartIndexer(partial(self._store, workspace), self._home.refuse_baked)

    async def graph(self, workspace: str) -> KnowledgeGraph:
        """The workspace's graph; an unknown workspace has an empty one."""
        from cragside.adapters.lightrag.knowledge_graph import SqliteKnowledgeGraph

        return SqliteKnowledgeGraph(partial(self._reading, workspace))

    async def prepare(self, workspace: str) -> None:
        """Open the workspace's store, if there is one, and have its embedding model loaded."""
        if store := await self._store(workspace):
            await store.embedder.prepare()
        # Whoever prepares a server stays for as long as it runs.
        self._leases.give_back()

    async def check(self, workspace: str, *, whole: bool = False) -> None:
        """Raises `ServiceUnavailable` when the workspace's store is damaged. See the port."""
        store = await self._store(workspace)
        if store and (how := await store.checkup.damage(whole=whole)):
            raise _damaged(workspace, how, store.database.read_only).at(store.database.path)

    async def names(self) -> list[str]:
        """The workspaces that have a store, in order."""
        await self._home.ready()
        return self._home.names()

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        """How much is stored in the workspace. It takes no place among the open stores."""
        if not self._has_store(workspace):
            return Stored()
        try:
            return await asyncio.to_thread(stored_in, self.folder(workspace) / FILE_NAME, keys)
        except sqlite3.DatabaseError as error:
            raise _unopened(workspace, error, read_only=False) from error

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        """Build the workspace anew with the configured embedding model; returns how many documents and exchanges it
        has.

        The old store serves, and keeps other writers out, until the new one is complete. When a source cannot be
        indexed the old store stays and `ServiceUnavailable` names the source. A baked store is refused.
        """
        await self._home.ready()
        self._home.refuse_baked()
        count = await self._rebuilt(workspace, progress)
        return count + await self._rebuilt(memory_of(workspace), progress)

    async def _rebuilt(self, workspace: str, progress: Callable[[str], None]) -> int:
        if not self._has_store(workspace):
            return 0
        # Texts are read back without their vectors, so the old model may be out of reach.
        old = await self._opened(workspace, self.folder(workspace), check=False)
        # A leading dot: no workspace can have this name.
        scratch = self._home.folder / f".reindexing-{workspace}"
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            async with old.store.writing(), old.store.accepting():
                count = await self._copied(workspace, old, scratch, progress)
                old.replace_by(scratch)
            if opened := self._open.pop(workspace, None):
                self._admitted.pop(workspace, None)
                await (await opened).close()
            return count
        finally:
            await old.close()
            shutil.rmtree(scratch, ignore_errors=True)

    async def close(self) -> None:
        """Close every workspace; one that fails to open or to close does not keep the others open."""
        await self._home.close()
        self._admitted.clear()
        openings = [self._open.popitem()[1] for _ in range(len(self._open))]
        opened = await asyncio.gather(*openings, return_exceptions=True)
        closing = [workspace.close() for workspace in opened if not isinstance(workspace, BaseException)]
        ended = await asyncio.gather(*closing, *self._closing, return_exceptions=True)
        failures = [failure for failure in ended if failure is not None]
        if failures:
            raise failures[0]

    async def _copied(
        self, workspace: str, old: "LightRagRepository", folder: Path, progress: Callable[[str], None]
    ) -> int:
        from cragside.adapters.lightrag.reindexing import rebuild

        fresh = await self._opened(workspace, folder)
        try:
            await fresh.store.embedder.prepare()
            return await rebuild(old.store, fresh.store, progress)
        finally:
            await fresh.close()

    def _start(self, workspace: str, opening: "Callable[[], Coroutine[Any, Any, Opened]]") -> "asyncio.Task[Opened]":
        task = self._open[workspace] = asyncio.create_task(self._in_turn(workspace, opening))
        task.add_done_callback(partial(self._forget_failure, workspace))
        return task

    async def _in_turn(self, workspace: str, opening: "Callable[[], Coroutine[Any, Any, Opened]]") -> "Opened":
        """Open a store when there is room for it; workspaces that wait get it in the order in which they came."""
        if workspace in self._admitted:
            return await opening()
        try:
            async with asyncio.timeout(self._patience), self._door:
                while workspace not in self._admitted:
                    if len(self._admitted) < self._most_open or await self._closed_one():
                        self._admitted[workspace] = None
                    else:
                        await self._leases.change()
        except TimeoutError:
            raise ServiceUnavailable(
                "knowledge_base", "Too many workspaces are in use at the moment. Try again in a few seconds."
            ) from None
        return await opening()

    async def _closed_one(self) -> bool:
        """Close the store that nobody has asked for in the longest time; False when all are in use.

        A store that gives disk space back takes long to close, so any other is closed rather than it.
        """
        idle = [workspace for workspace in self._admitted if self._is_idle(workspace)]
        if not idle:
            return False
        quick = (workspace for workspace in idle if not _tidies(self._open[workspace].result()))
        workspace = next(quick, idle[0])
        closing = asyncio.create_task(self._open.pop(workspace).result().close())
        del self._admitted[workspace]
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        # Whoever waits may give up; the store is closed all the same.
        await asyncio.shield(closing)
        return True

    def _is_idle(self, workspace: str) -> bool:
        opening = self._open[workspace]
        return _opened_well(opening) and not self._leases.held(workspace) and not _working(opening.result())

    async def _existing(self, workspace: str) -> "Opened | None":
        await self._home.ready()
        await self._open_owner(workspace)
        self._ask(workspace)
        opening = self._open.get(workspace)
        if opening is None:
            if manifest := self._home.baked():
                if (baked := self._home.baked_name(manifest, workspace)) is None:
                    return None
                opening = self._start(workspace, partial(self._opened_baked, workspace, manifest, baked))
            elif not self._has_store(workspace):
                return None
            else:
                opening = self._start(workspace, partial(self._opened_apart, workspace))
        elif opening.done() and _outdated(workspace, opening.result()):
            opening = self._start(workspace, partial(self._reopened, workspace, opening.result()))
        return opening.result() if opening.done() else await asyncio.shield(opening)

    def _has_store(self, workspace: str) -> bool:
        try:
            folder = self.folder(workspace)
            check_store_file(folder)
            return (folder / FILE_NAME).exists()
        except OSError as error:
            raise _out_of_reach(workspace, error) from error

    def _ask(self, workspace: str) -> None:
        self._leases.take(workspace)
        if workspace in self._admitted:  # now the last one
            del self._admitted[workspace]
            self._admitted[workspace] = None

    async def _created(self, workspace: str) -> "Opened":
        self._home.refuse_baked()
        await self._open_owner(workspace)
        self._ask(workspace)
        opening = self._open.get(workspace) or self._start(workspace, partial(self._opened_apart, workspace))
        return await asyncio.shield(opening)

    async def _store(self, workspace: str) -> "Store | None":
        found = await self._existing(workspace)
        return None if found is None else found.store

    async def _reading(self, workspace: str) -> Database | None:
        store = await self._store(workspace)
        return None if store is None else store.database

    async def _new_store(self, workspace: str) -> "Store":
        self._home.refuse_baked()
        opened = await self._created(workspace)
        assert opened.store is not None  # noqa: S101 (only a baked store that is not there has none)
        return opened.store

    async def _opened_baked(self, workspace: str, manifest: Manifest, baked: str) -> BakedRepository:
        self._home.check(manifest, baked)
        store = await self._opened(workspace, self.folder(workspace), read_only=True)
        return BakedRepository(store, self._home.refusal, store.store)

    async def _reopened(self, workspace: str, outdated: RagRepository) -> "LightRagRepository":
        try:
            return await self._opened_apart(workspace)
        finally:
            await outdated.close()

    async def _open_owner(self, workspace: str) -> None:
        """Exchanges that are still beside the documents are moved when the documents' store is opened."""
        if is_memory(workspace) and not self._home.baked():
            # What is wrong with the documents' store is no reason to be without memory.
            with suppress(CragsideError):
                await self._existing(owner_of(workspace))

    async def _opened_apart(self, workspace: str) -> "LightRagRepository":
        """The workspace's store, with documents alone in it or exchanges alone."""
        opened = await self._opened(workspace, self.folder(workspace))
        if is_memory(workspace):
            return opened
        try:
            await self._part(opened.store)
        except BaseException:
            await opened.close()
            raise
        return opened

    async def _part(self, documents: "Store") -> None:
        from cragside.adapters.lightrag.parting import bind_model, exchanges_in, is_parted, move, settle
        from cragside.adapters.lightrag.store import failing_as_unavailable

        async with failing_as_unavailable():
            if is_parted(documents):
                return
            if not (found := exchanges_in(documents)):
                await settle(documents)
                return
            name = memory_of(documents.workspace)
            bind_model(self.folder(name), documents.database.meta("embedding_model"))
            memory = await self._opened(name, self.folder(name))
            try:
                await move(documents, memory.store, found)
            finally:
                await memory.close()

    def _forget_failure(self, workspace: str, opening: "asyncio.Task[Opened]") -> None:
        if opening.cancelled() or opening.exception():
            self._open.pop(workspace, None)
            self._admitted.pop(workspace, None)

    async def _opened(
        self, workspace: str, folder: Path, *, check: bool = True, read_only: bool = False
    ) -> "LightRagRepository":
        # Importing LightRAG takes a second or two: whoever never opens a store should not wait for it.
        from cragside.adapters.lightrag.chunking import chunker
        from cragside.adapters.lightrag.embedding_cache import CachedEmbedder
        from cragside.adapters.lightrag.engine import build_engine
        from cragside.adapters.lightrag.repository import LightRagRepository
        from cragside.adapters.lightrag.store import Store

        database = _database(workspace, folder, read_only=read_only)
        try:
            stored = database.meta("embedding_model")
            anew = f", or build the store anew: cragside reindex --workspace {owner_of(workspace)}"
            remedy = "" if read_only else anew
            model = await self._embedder(stored if check else None, workspace, remedy)
            embedder = CachedEmbedder(model, database)
            engine = build_engine(
                folder,
                workspace=_lock_name(folder),
                embedder=embedder,
                model=self._model,
                search_text=self._search_text,
                parallel=self._parallel,
            )
            await engine.initialize_storages()
        except BaseException as error:
            database.release()
            if isinstance(error, sqlite3.DatabaseError):
                raise _unopened(workspace, error, read_only) from error
            raise
        store = Store(
            engine,
            database,
            folder,
            workspace=workspace,
            embedder=embedder,
            chunks=lambda text: chunker(self._count_tokens, *self._chunking(workspace))(text),
            count_tokens=self._count_tokens,
            part_passages=self._part_passages,
        )
        return LightRagRepository(
            store,
            keywords_of=self._keywords_of,
            ranker=self._ranker,
            saved_queries=self._saved_queries,
        )

    async def _embedder(self, stored: str | None, workspace: str, remedy: str) -> Embedder:
        if stored is None:
            return await self._open_embedder(self._embedding_model)
        if self._embedding_model is None:
            return await self._open_embedder(stored)
        wanted = await self._open_embedder(self._embedding_model)
        if wanted.name != stored:
            raise ConfigurationError(
                f"Workspace {spoken(workspace)} was built with the embedding model {stored}, but RAG_EMBEDDING_MODEL "
                f"names {wanted.name}. Unset the variable{remedy}"
            )
        return wanted


def _opened_well(opening: "asyncio.Task[Opened]") -> bool:
    return opening.done() and not opening.cancelled() and opening.exception() is None


def _outdated(workspace: str, opened: "Opened") -> bool:
    try:
        return opened.replaced
    except sqlite3.DatabaseError as error:
        raise _unopened(workspace, error, read_only=False) from error


def _tidies(opened: "Opened") -> bool:
    return opened.store is not None and opened.store.tidying.busy


def _working(opened: "Opened") -> bool:
    return opened.store is not None and opened.store.workers > 0


def _database(workspace: str, folder: Path, *, read_only: bool) -> Database:
    try:
        check_store_file(folder)
        return Database.acquire(folder, read_only=read_only)
    except StoreFormatError as error:
        raise ServiceUnavailable("knowledge_base", f"Workspace {spoken(workspace)}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise _unopened(workspace, error, read_only) from error
    except OSError as error:
        raise _out_of_reach(workspace, error) from error


def _unopened(workspace: str, error: sqlite3.DatabaseError, read_only: bool) -> ServiceUnavailable:
    if is_damage(error):
        return _damaged(workspace, told(error), read_only)
    return ServiceUnavailable("knowledge_base", f"The store of workspace {spoken(workspace)} {unusable(error)}.")


def _damaged(workspace: str, how: str, read_only: bool) -> ServiceUnavailable:
    remedy = "Bake it again." if read_only else "Stop cragside, move its folder away, and ingest again."
    said = f"The store of workspace {spoken(workspace)} is damaged ({how}). {remedy}"
    return ServiceUnavailable("knowledge_base", said)


def _out_of_reach(workspace: str, error: OSError) -> ServiceUnavailable:
    said = f"The store of workspace {spoken(workspace)} cannot be opened: {error.strerror}. Check RAG_HOME."
    return ServiceUnavailable("knowledge_base", said)


def _lock_name(folder: Path) -> str:
    """LightRAG keeps its locks by workspace name for the whole process; the same name in two homes has to differ."""
    return hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
