"""Searches for passages, by similarity or by relevance, without correction."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

from cachetools import LRUCache

from cragside.application.grading import Grading, by_relevance, compressed
from cragside.application.preferences import WorkspacePreferences
from cragside.domain.errors import ValidationError
from cragside.domain.evidence import Document
from cragside.domain.indexing import DocumentRecord, Passage, payload_of
from cragside.domain.knowledge import Neighbourhood
from cragside.domain.outcome import Degradation, left_out
from cragside.domain.query import (
    DEFAULT_BALANCE,
    DEFAULT_FETCH,
    Filter,
    Mode,
    Ranking,
    SimilaritySearch,
    Strategy,
    refuse_overlong_query,
)
from cragside.domain.reading import Reading
from cragside.ports.models import RelevanceGrader

if TYPE_CHECKING:
    from cragside.ports.rag_repository import RagRepository
    from cragside.store.workspaces import Workspaces

# With a filter so many are retrieved: the graph cannot filter, so most are dropped afterwards.
_WIDE = 100


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

    By relevance, `mode` is LightRAG's; without one, it retrieves as `/rag` does. `both`: the grader of `/rag` grades,
    with the chat model `model` if there is a host, and passages get their similarity as well. Otherwise the embedded
    grader grades. By similarity, the other options are those of `SimilaritySearch`, and the workspace's preferences
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


class RelevantPassages:
    """Ranks the passages of a workspace by their relevance to a question."""

    def __init__(
        self,
        workspaces: "Workspaces",
        grading: Grading,
        embedded_grader: RelevanceGrader,
        *,
        candidates: int,
        threshold: float,
    ) -> None:
        self._workspaces = workspaces
        self._grading = grading
        self._embedded_grader = embedded_grader
        self._candidates = candidates
        self._threshold = threshold

    async def find(self, search: Lookup, *, workspace: str, seconds: float) -> tuple[list[Document], list[Degradation]]:
        """Return all candidates with their relevance, best first, and what failed. There may be more than the `limit`.

        `seconds` bound the grading. Raises `ValidationError` for a blank or overlong text, and `ServiceUnavailable`.
        """
        if not search.question.strip():
            raise ValidationError("A search needs a text.", field="query")
        refuse_overlong_query(search.question)
        repository = (await self._workspaces.open(workspace)).passages
        with left_out() as missing:
            reading, candidates = await self._retrieved(search, repository)
        degraded: Sequence[Degradation] = ()
        if search.both:
            graded = await self._grading.graded(
                reading, candidates, seconds=seconds, threshold=self._threshold, model=search.model
            )
            found, degraded = await _compared(search.question, graded.documents, repository), graded.degraded
        else:
            scores = await self._embedded_grader.grade_read(reading, candidates)
            found = by_relevance(candidates, scores)
        if search.compress:
            found = await compressed(reading, found, self._embedded_grader)
        return found, [*missing, *degraded]

    async def _retrieved(self, search: Lookup, repository: "RagRepository") -> tuple[Reading, list[Document]]:
        # As many as for `/rag`, so that both see the same best one. LightRAG's clients get what they ask for.
        limit = search.limit or _DEFAULT_LIMIT
        enough = limit if search.mode and not search.both else max(limit, self._candidates)
        most = _WIDE if search.filter.must else enough
        reading, found = await repository.look_up(
            search.question, limit=most, mode=search.mode or "mix", wanted=search.filter
        )
        if search.mode is not None or len(found) >= enough:
            return reading, found
        near = SimilaritySearch(reading.text, limit=enough, threshold=0.0, filter=search.filter)
        known = {document.id for document in found} | {document.content for document in found}
        others = [each for each in await repository.similar(near) if known.isdisjoint((each.id, each.content))]
        return reading, [*found, *others[: enough - len(found)]]


async def _compared(question: str, documents: Sequence[Document], repository: "RagRepository") -> list[Document]:
    missing = [document.id for document in documents if document.similarity is None]
    cosines = await repository.similarities(question, missing)
    return [document.compared(cosines[document.id]) if document.id in cosines else document for document in documents]


_REMEMBERED = 100


class Retriever:
    """Searches a workspace's passages by similarity.

    It caches the answers to the last 100 searches until their store changes.
    """

    def __init__(self, workspaces: "Workspaces", grader: RelevanceGrader, preferences: WorkspacePreferences) -> None:
        self._workspaces = workspaces
        self._grader = grader
        self._preferences = preferences
        self._answers: LRUCache[tuple[str, str, bool], tuple[str, tuple[Document, ...]]] = LRUCache(_REMEMBERED)

    async def search_for(
        self,
        text: str,
        *,
        workspace: str,
        limit: int | None = None,
        threshold: float | None = None,
        strategy: Strategy | None = None,
        fetch: int | None = None,
        balance: float | None = None,
        wanted: Filter | None = None,
    ) -> SimilaritySearch:
        """Return a search, with the workspace's preferences as defaults.

        Raises `ValidationError` for a blank or overlong text.
        """
        if not text.strip():
            raise ValidationError("A search needs a text.", field="query")
        refuse_overlong_query(text)
        preferred = await self._preferences.of(workspace)
        return SimilaritySearch(
            text,
            limit=preferred.similarity_results if limit is None else limit,
            threshold=preferred.similarity_threshold if threshold is None else threshold,
            strategy=strategy or preferred.similarity_strategy,
            fetch=DEFAULT_FETCH if fetch is None else fetch,
            balance=DEFAULT_BALANCE if balance is None else balance,
            filter=wanted or Filter(),
        )

    async def search(self, search: SimilaritySearch, *, workspace: str, compress: bool = False) -> list[Document]:
        """Return passages with their similarity, nearest first, or in the order of `mmr`. Raises `ServiceUnavailable`.

        `compress` reduces each passage to its relevant strips.
        """
        repository = (await self._workspaces.open(workspace)).passages
        # The version is read before the search, so a write during the search makes the answer stale.
        version = await repository.version()
        key = (workspace, repr(search), compress)
        known = self._answers.get(key)
        if known is not None and known[0] == version:
            return list(known[1])
        found: Sequence[Document] = await repository.similar(search)
        if compress:
            found = await compressed(Reading(search.text), found, self._grader)
        self._answers[key] = version, tuple(found)
        return list(found)


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

    def __init__(self, workspaces: "Workspaces", retriever: Retriever, relevant: RelevantPassages) -> None:
        self._workspaces = workspaces
        self._retriever = retriever
        self._relevant = relevant

    async def find(self, lookup: Lookup, *, workspace: str, seconds: float) -> Found:
        """Return the passages. `seconds` bound the grading."""
        if lookup.by == "similarity":
            hits = _hits(await self._similar(lookup, workspace))
            return Found(hits, best=None if hits else await self._nearest(lookup, workspace))
        documents, degraded = await self._relevant.find(lookup, workspace=workspace, seconds=seconds)
        hits = _hits([each for each in documents if _suffices(each, lookup)])
        best = documents[0].relevance if documents and not hits else None
        return Found(hits[: lookup.limit or _DEFAULT_LIMIT], degraded, best)

    async def around(self, hits: Sequence[Hit], *, workspace: str, depth: int = 2) -> Neighbourhood:
        """Return the entities that the passages mention, and all that `depth` steps lead to."""
        if not hits:
            return Neighbourhood()
        graph = (await self._workspaces.open(workspace)).graph
        names = await graph.of_passages([hit.passage.id for hit in hits], limit=_SEEDS)
        return await graph.expand(names, depth=depth, limit=_ENTITIES) if names else Neighbourhood()

    async def within(self, hits: Sequence[Hit], *, workspace: str) -> tuple[dict[str, list[Hit]], Neighbourhood]:
        """Return the entities that the passages mention, each with its passages in order, and the graph of these."""
        graph = (await self._workspaces.open(workspace)).graph
        names, shown = await graph.within([hit.passage.id for hit in hits], each=_SEEDS, limit=_ENTITIES)
        mentioned: dict[str, list[Hit]] = {}
        for hit in hits:
            for name in names.get(hit.passage.id, ()):
                mentioned.setdefault(name, []).append(hit)
        return mentioned, shown

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


def _hits(documents: Sequence[Document]) -> list[Hit]:
    return [Hit(document, *document.stored) for document in documents if document.stored]


def _suffices(document: Document, lookup: Lookup) -> bool:
    least = lookup.least_similarity
    near = least is None or document.similarity is None or document.similarity >= least
    return near and (document.relevance or 0.0) >= (lookup.least_relevance or 0.0)
