"""The use case: stored passages for a question, with their documents and the graph around them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cragside.application.retriever import Retriever
from cragside.domain.document import Document
from cragside.domain.filter import Filter
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.payload import payload_of
from cragside.domain.search import Mode, Strategy
from cragside.ports.knowledge_graph import Neighbourhood
from cragside.ports.workspaces import Workspaces

# Candidates before filtering: the graph cannot filter.
_WIDE = 100
# The entities that a graph is expanded from, and the most in all.
_SEEDS = 20
_ENTITIES = 50


@dataclass(frozen=True, slots=True)
class Lookup:
    """A search. `mode` is LightRAG's; without one, passages are ranked by cosine.

    `threshold` is the least score of a passage. The other options are those of `SimilaritySearch`; the workspace's
    preferences are the defaults of `limit`, `threshold` and `strategy`. `compress` reduces a passage to its relevant
    strips.
    """

    question: str
    limit: int | None = None
    mode: Mode | None = None
    threshold: float | None = -1.0
    filter: Filter = field(default_factory=Filter)
    strategy: Strategy | None = None
    fetch: int | None = None
    balance: float | None = None
    compress: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A found passage with its document. `evidence` is its retrieved text, with its score."""

    evidence: Document
    record: DocumentRecord
    passage: Passage

    @property
    def id(self) -> str:
        """The document's id and the passage's number, as rag-stack writes it."""
        return f"{self.record.id}:{self.passage.index}"

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of the passage."""
        return payload_of(self.record, self.passage)


class PassageFinder:
    """Finds passages and the graph around them. Failures of the store raise `ServiceUnavailable`."""

    def __init__(self, workspaces: Workspaces, retriever: Retriever) -> None:
        self._workspaces = workspaces
        self._retriever = retriever

    async def find(self, lookup: Lookup, *, workspace: str) -> list[Hit]:
        """Passages, most promising first, without those whose document was just deleted."""
        documents = await self._retrieved(lookup, workspace)
        library = (await self._workspaces.open(workspace)).documents
        known = await library.passages_by_id([document.id for document in documents])
        hits = [Hit(document, *known[document.id]) for document in documents if document.id in known]
        least = float("-inf") if lookup.threshold is None else lookup.threshold
        return [hit for hit in hits if (hit.evidence.score or 0.0) >= least][: lookup.limit]

    async def around(self, hits: Sequence[Hit], *, workspace: str, depth: int = 2) -> Neighbourhood:
        """The entities that the passages mention, and all that `depth` steps lead to."""
        if not hits:
            return Neighbourhood()
        graph = (await self._workspaces.open(workspace)).graph
        names = await graph.of_passages([hit.passage.id for hit in hits], limit=_SEEDS)
        return await graph.expand(names, depth=depth, limit=_ENTITIES) if names else Neighbourhood()

    async def mentions(self, hits: Sequence[Hit], *, workspace: str) -> dict[str, list[Hit]]:
        """The entities that the passages mention, each with its passages in order."""
        graph = (await self._workspaces.open(workspace)).graph
        mentioned: dict[str, list[Hit]] = {}
        for hit in hits:
            for name in await graph.of_passages([hit.passage.id], limit=_SEEDS):
                mentioned.setdefault(name, []).append(hit)
        return mentioned

    async def among(self, names: Iterable[str], *, workspace: str) -> Neighbourhood:
        """Entities and the relations between them."""
        chosen = list(names)[:_ENTITIES]
        graph = (await self._workspaces.open(workspace)).graph
        return await graph.expand(chosen, depth=0, limit=_ENTITIES) if chosen else Neighbourhood()

    async def _retrieved(self, lookup: Lookup, workspace: str) -> list[Document]:
        if lookup.mode is None:
            return await self._similar(lookup, workspace)
        repository = (await self._workspaces.open(workspace)).passages
        limit = _WIDE if lookup.filter.must or lookup.limit is None else lookup.limit
        return await repository.retrieve(lookup.question, limit=limit, mode=lookup.mode, wanted=lookup.filter)

    async def _similar(self, lookup: Lookup, workspace: str) -> list[Document]:
        search = self._retriever.search_for(
            lookup.question,
            workspace=workspace,
            limit=lookup.limit,
            threshold=lookup.threshold,
            strategy=lookup.strategy,
            fetch=lookup.fetch,
            balance=lookup.balance,
            wanted=lookup.filter,
        )
        return await self._retriever.search(search, workspace=workspace, compress=lookup.compress)
