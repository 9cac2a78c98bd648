"""One open store: LightRAG, the ledger, and the locks that keep their writers apart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import AsyncFileLock, Timeout

from cragside.adapters.lightrag.chunking import Chunker
from cragside.adapters.lightrag.embedding_cache import CachedEmbedder
from cragside.adapters.lightrag.engine import Engine
from cragside.adapters.lightrag.ledger.changes import GraphChange, Guard
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.private_files import FILE_MODE
from cragside.domain.context import CountTokens

# Edges that a query follows from each entity. More cost more and changed no route of the evals.
_EDGES_PER_ENTITY = 2


class Store:
    """What the ports of one workspace share.

    Of each lock there is one holder at a time in all processes: `accepting` for the catalogue and the passages, held
    for a moment; `writing` for the graph, held while a part is merged. Whoever needs both takes `writing` first.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        folder: Path,
        *,
        workspace: str,
        generation: str,
        embedder: CachedEmbedder,
        chunks: Chunker,
        count_tokens: CountTokens,
        part_passages: int,
    ) -> None:
        self.engine = engine
        self.reader = engine.reader(_EDGES_PER_ENTITY)
        self.ledger = ledger
        self.workspace = workspace
        self.embedder = embedder
        self.embedding_model = embedder.name
        self.chunks = chunks
        self.count_tokens = count_tokens
        self.part_passages = part_passages
        # Those that work on a part, which may take a model's time.
        self.workers = 0
        self._generation = generation
        self._state = ""
        self._writing = asyncio.Lock()
        self._accepting = asyncio.Lock()
        self._write_lock = AsyncFileLock(folder / "writer.lock", timeout=-1, mode=FILE_MODE)
        self._accept_lock = AsyncFileLock(folder / "catalogue.lock", timeout=-1, mode=FILE_MODE)

    async def is_replaced(self) -> bool:
        """Whether the whole content was replaced, or another model began it, so that it has to be opened anew."""
        if (state := await self.ledger.state()) == self._state:
            return False
        if await self.ledger.embedding_model() not in (None, self.embedding_model):
            return True
        if await self.ledger.generation() != self._generation:
            return True
        self._state = state
        return False

    async def apply(self, change: GraphChange, guard: Guard) -> bool:
        """Change the graph at once, unless the guard says that it is not wanted any more. Only while `writing`."""
        return await self.ledger.apply(change, guard, self.embedding_model)

    def tidy(self) -> None:
        """Give the disk back soon that is no longer needed."""
        self.ledger.tidy(self._alone_if_free)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Keep every other writer of the graph out, of this process and of others."""
        async with self._writing, self._write_lock:
            yield

    @asynccontextmanager
    async def writing_if_free(self) -> AsyncIterator[bool]:
        """As `writing` for whoever does not wait: False when somebody is writing."""
        if self._writing.locked():
            yield False
            return
        async with self._writing:
            try:
                await self._write_lock.acquire(timeout=0)
            except Timeout:
                yield False
                return
            try:
                yield True
            finally:
                await self._write_lock.release()

    @asynccontextmanager
    async def _alone_if_free(self) -> AsyncIterator[bool]:
        """Keep every other writer out. False when somebody is writing to the graph."""
        async with self.writing_if_free() as free:
            if not free:
                yield False
                return
            async with self.accepting():
                yield True

    @asynccontextmanager
    async def accepting(self) -> AsyncIterator[None]:
        """Keep every other writer of the catalogue out, of this process and of others."""
        async with self._accepting, self._accept_lock:
            # The graph's writer commits without this lock.
            await self.ledger.turn()
            yield

    async def close(self) -> None:
        """Flush and close the store."""
        try:
            await self.ledger.close()
            await self.engine.finalize_storages()
        finally:
            self.ledger.release()


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Finds and makes the store of one workspace.

    `existing` gives None while there is no store; `create` makes it. `check_writable` raises `ReadOnlyStore` where
    nothing can be written.
    """

    workspace: str
    existing: Callable[[], Awaitable[Store | None]]
    create: Callable[[], Awaitable[Store]]
    check_writable: Callable[[], None]
