"""Holds one open store: LightRAG, the ledger, and the leases that keep their writers apart."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from cragside.domain.context import CountTokens
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.domain.languages import Languages
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.chunking import Chunker
from cragside.store.driver import Since
from cragside.store.embeddings import CachedEmbedder
from cragside.store.engine import Engine
from cragside.store.leases import DOCUMENTS, GRAPH, Leases
from cragside.store.ledger import Ledger
from cragside.store.merges import GraphShare, Merges, VectorShare

Answer = TypeVar("Answer")

# Edges that a query follows from each entity. More cost more and changed no route of the evals.
_EDGES_PER_ENTITY = 2
# Passages that are written together: an event loop does nothing else while as many are written.
_MERGED_TOGETHER, _EMBEDDED_TOGETHER = 40, 200


class StoreReplaced(ServiceUnavailable):
    """The workspace has another store by now, or none. Open it anew and ask again."""

    def __init__(self) -> None:
        super().__init__("knowledge_base", "The workspace is being replaced. Ask again.")


class Store:
    """Holds the open store of one workspace, which library, graph, repository and indexer share.

    `accepting` takes the lease of the catalogue and the passages for a moment, `writing` that of the graph while a part
    is merged. In all processes, one task at a time holds each. Whoever needs both takes `writing` first. Both give the
    ledger to write with: what is written with it is refused once another process has taken the lease, or that of the
    part of one of the tasks if this store took that as well.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        *,
        workspace: str,
        generation: str,
        embedder: CachedEmbedder,
        chunker: Callable[[], Awaitable[Chunker]],
        count_tokens: CountTokens,
        part_passages: int,
        lease_seconds: float,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.engine = engine
        self.reader = engine.reader(_EDGES_PER_ENTITY)
        self.ledger = ledger
        self.workspace = workspace
        self.embedder = embedder
        self.embedding_model = embedder.name
        self.chunker = chunker
        self.count_tokens = count_tokens
        self.part_passages = part_passages
        # Those that work on a part, which may take a model's time.
        self.workers = 0
        self.merges = Merges[GraphShare](self.writing, _MERGED_TOGETHER)
        self.embeddings = Merges[VectorShare](self.accepting, _EMBEDDED_TOGETHER)
        self._generation = generation
        self._state = ""
        self._languages: tuple[str, Languages] | None = None
        self.leases = Leases(ledger.driver, lease_seconds, clock)

    async def is_replaced(self) -> bool:
        """Return True if the store has to be opened anew: its content was replaced, or another model began it."""
        return not self._is_still(await self.ledger.driver.since(self._state))

    @property
    def searches_tell_replacement(self) -> bool:
        """Return True if a search also reads the state that `is_replaced` asks for."""
        tell: bool = self.reader.chunks_vdb.finds_store
        return tell

    async def check(self, now: Since | None) -> None:
        """Raise `StoreReplaced` if the store is replaced. `now` is what a search read of it, if it did."""
        if not self._is_still(now or await self.ledger.driver.since(self._state)):
            raise StoreReplaced

    def _is_still(self, now: Since | None) -> bool:
        if now is None:  # nothing has changed
            return True
        if now.embedding_model not in (None, self.embedding_model) or now.generation != self._generation:
            return False
        self._state = now.state
        return True

    async def languages(self) -> Languages:
        """Count the passages of each language, once for each state of the store."""
        state = await self.ledger.driver.state()
        if self._languages is None or self._languages[0] != state:
            counted = await self.ledger.languages()
            if None in counted:  # annotating a passage does not change the state
                return counted
            self._languages = state, counted
        return self._languages[1]

    def tidy(self) -> None:
        """Give the disk back soon that is no longer needed."""
        self.ledger.driver.tidy()

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Ledger]:
        """Keep every other writer of the graph out, of this process and of others."""
        async with self.leases.held(GRAPH) as lease:
            await self.ledger.driver.catch_up()
            yield self.ledger.with_leases(lease)

    @asynccontextmanager
    async def writing_if_free(self) -> AsyncIterator[Ledger | None]:
        """Keep writers out as `writing` does, but yield None if somebody is writing."""
        async with self.leases.held_if_free(GRAPH) as lease:
            if lease:
                await self.ledger.driver.catch_up()
            yield self.ledger.with_leases(lease) if lease else None

    @asynccontextmanager
    async def accepting(self, *tasks: Task) -> AsyncIterator[Ledger]:
        """Keep every other writer of the catalogue out, of this process and of others."""
        async with self.leases.held(DOCUMENTS) as lease:
            yield self.working(self.ledger.with_leases(lease), *tasks)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Ledger]:
        """Keep every other writer out."""
        async with self.leases.held(GRAPH) as graph, self.leases.held(DOCUMENTS) as documents:
            yield self.ledger.with_leases(graph, documents)

    def working(self, ledger: Ledger, *tasks: Task) -> Ledger:
        """Return a ledger whose writes are also refused once another process has taken the part of one of the tasks."""
        return ledger.with_leases(*(each for task in tasks for each in self.leases.of(part_lease(task))))

    async def close(self) -> None:
        """Flush and close the store."""
        try:
            await self.ledger.driver.close()
        finally:
            try:
                await self.leases.close()
                await self.engine.finalize_storages()
            finally:
                self.ledger.driver.release()


def part_lease(task: Task) -> str:
    """Name the lease of the worker that enriches the task's part."""
    return f"part {task.document_id}/{task.content_hash}/{task.part}"


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """Finds and makes the store of one workspace.

    `existing` gives None while there is no store; `create` makes it. `searchable` is `existing`, except that a store
    may be replaced where searches, and whoever records a query, tell that. `check_writable` raises `ReadOnlyStore`
    where nothing can be written.
    """

    workspace: str
    existing: Callable[[], Awaitable[Store | None]]
    searchable: Callable[[], Awaitable[Store | None]]
    create: Callable[[], Awaitable[Store]]
    check_writable: Callable[[], None]

    async def searched(self, search: Callable[[Store], Awaitable[Answer]], otherwise: Answer) -> Answer:
        """Run a search in the current store; return `otherwise` while there is none. It may also record something."""
        try:
            store = await self.searchable()
            return await search(store) if store else otherwise
        except StoreReplaced:
            store = await self.existing()
            return await search(store) if store else otherwise
