"""The use case: stored passages for a question, with their documents and the graph around them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from cragside.application.relevance import RelevanceSearch, RelevantPassages
from cragside.application.retriever import Retriever
from cragside.domain.document import Document
from cragside.domain.errors import ValidationError
from cragside.domain.filter import Filter
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.outcome import Degradation
from cragside.domain.payload import payload_of
from cragside.domain.search import Mode, Ranking, Strategy
from cragside.ports.workspaces import Neighbourhood, Workspaces

# The entities that a graph is expanded from, and the most in all.
_SEEDS = 20
_ENTITIES = 50
# Passages of a search by relevance that names no number.
_DEFAULT_LIMIT = 8
# What neither search accepts: the other one's name, and its options as requests name them.
_FOREIGN = {
    "similarity": ("relevance", {"mode": "mode", "least_relevance": "min_relevance", "model": "model"}),
    "relevance": ("similarity", {"strategy": "strategy", "fetch": "fetch", "balance": "balance"}),
}


@dataclass(frozen=True, slots=True)
class Lookup:
    """A search. `by` says what ranks the passages, and both least figures hold for those that have the figure.

    By relevance, `mode` is LightRAG's; without one, it retrieves as `/rag` does. For `both` and `model`, see
    `RelevanceSearch`. By similarity, the other options are those of `SimilaritySearch`, and the workspace's preferences
    are the defaults of `limit`, `least_similarity` and `strategy`. `compress` reduces a passage to its relevant strips.
    """

    question: str
    limit: int | None = None
    by: Ranking = "relevance"
    mode: Mode | None = None
    least_relevance: float | None = None
    least_similarity: float | None = None
    filter: Filter = field(default_factory=Filter)
    both: bool = False
    model: str | None = None
    strategy: Strategy | None = None
    fetch: int | None = None
    balance: float | None = None
    compress: bool = False

    def __post_init__(self) -> None:
        if self.by not in get_args(Ranking):
            raise ValidationError(f"by is relevance or similarity, not {self.by!r}.", field="by")
        other, foreign = _FOREIGN[self.by]
        for name, option in foreign.items():
            if getattr(self, name) is not None:
                raise ValidationError(f"{option} is an option of a search by {other}. Leave it out.", field=option)


@dataclass(frozen=True, slots=True)
class Hit:
    """A found passage with its document. `evidence` is its retrieved text, with its figures."""

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


@dataclass(frozen=True, slots=True)
class Found:
    """The passages of a search, best first. `best` is the figure of the best one if all were below the least."""

    hits: list[Hit]
    degraded: Sequence[Degradation] = ()
    best: float | None = None


class PassageFinder:
    """Finds passages and the graph around them. Failures of the store raise `ServiceUnavailable`."""

    def __init__(self, workspaces: Workspaces, retriever: Retriever, relevant: RelevantPassages) -> None:
        self._workspaces = workspaces
        self._retriever = retriever
        self._relevant = relevant

    async def find(self, lookup: Lookup, *, workspace: str, seconds: float) -> Found:
        """The passages, without those whose document was just deleted. `seconds` bound the grading."""
        if lookup.by == "similarity":
            hits = await self._stored(await self._similar(lookup, workspace), workspace)
            return Found(hits, best=None if hits else await self._nearest(lookup, workspace))
        search = RelevanceSearch(
            lookup.question,
            lookup.limit or _DEFAULT_LIMIT,
            lookup.mode,
            lookup.filter,
            both=lookup.both,
            model=lookup.model,
            compress=lookup.compress,
        )
        documents, degraded = await self._relevant.find(search, workspace=workspace, seconds=seconds)
        hits = await self._stored([each for each in documents if _suffices(each, lookup)], workspace)
        best = documents[0].relevance if documents and not hits else None
        return Found(hits[: search.limit], degraded, best)

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
        names = await graph.of_each_passage([hit.passage.id for hit in hits], limit=_SEEDS)
        mentioned: dict[str, list[Hit]] = {}
        for hit in hits:
            for name in names.get(hit.passage.id, ()):
                mentioned.setdefault(name, []).append(hit)
        return mentioned

    async def among(self, names: Iterable[str], *, workspace: str) -> Neighbourhood:
        """Entities and the relations between them."""
        chosen = list(names)[:_ENTITIES]
        graph = (await self._workspaces.open(workspace)).graph
        return await graph.expand(chosen, depth=0, limit=_ENTITIES) if chosen else Neighbourhood()

    async def _stored(self, documents: Sequence[Document], workspace: str) -> list[Hit]:
        library = (await self._workspaces.open(workspace)).documents
        known = await library.passages_by_id([document.id for document in documents])
        return [Hit(document, *known[document.id]) for document in documents if document.id in known]

    async def _similar(self, lookup: Lookup, workspace: str) -> list[Document]:
        search = await self._retriever.search_for(
            lookup.question,
            workspace=workspace,
            limit=lookup.limit,
            threshold=lookup.least_similarity,
            strategy=lookup.strategy,
            fetch=lookup.fetch,
            balance=lookup.balance,
            wanted=lookup.filter,
        )
        return await self._retriever.search(search, workspace=workspace, compress=lookup.compress)

    async def _nearest(self, lookup: Lookup, workspace: str) -> float | None:
        nearest = replace(lookup, limit=1, least_similarity=0.0, strategy="similarity", compress=False)
        return next((each.similarity for each in await self._similar(nearest, workspace)), None)


def _suffices(document: Document, lookup: Lookup) -> bool:
    least = lookup.least_similarity
    near = least is None or document.similarity is None or document.similarity >= least
    return near and (document.relevance or 0.0) >= (lookup.least_relevance or 0.0)
