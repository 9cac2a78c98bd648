"""Searches for passages: what is asked, and the answer with their relevance and their similarity."""

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from cragside.application.grading import GRADE_SHARE
from cragside.application.passages import Found, Hit, Lookup
from cragside.domain.errors import DeadlineExceeded, ValidationError
from cragside.domain.knowledge import Neighbourhood
from cragside.domain.query import DEFAULT_BALANCE, DEFAULT_FETCH, EVERYTHING, LONGEST_QUERY, Mode, Ranking, Strategy
from cragside.entrypoints.http.models import Degraded, GraphAround, PayloadFilter, WorkspaceRequest

if TYPE_CHECKING:
    from cragside.bootstrap import Container

T = TypeVar("T")

_MOST_PASSAGES = 100


class PassageQuery(WorkspaceRequest):
    """A search for passages. By similarity, the settings of the workspace are the defaults."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "Who lights the lamp?", "limit": 3}]})

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, pattern=r"\S", description="The question.")
    by: Ranking = Field(
        "relevance",
        description="What ranks the passages: `relevance`, as for a prompt with `/rag`, or `similarity`, which grades "
        "nothing.",
    )
    limit: int | None = Field(
        None, ge=1, le=_MOST_PASSAGES, description="Most passages; 8, or by similarity as the settings."
    )
    min_relevance: float | None = Field(None, ge=0, le=1, description="By relevance: the least one of a passage.")
    min_similarity: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Least similarity of a passage. By relevance there is none; by similarity as the settings, else "
        "what fits the embedding model.",
    )
    mode: Mode | None = Field(None, description="By relevance: LightRAG's mode; `mix` without it.")
    model: str | None = Field(None, description="By relevance: the chat model that judges, if the host has it.")
    strategy: Strategy | None = Field(
        None, description="By similarity: `mmr` is for diversity. Default: as the settings."
    )
    fetch: int | None = Field(
        None,
        ge=1,
        le=_MOST_PASSAGES,
        description=f"How many `mmr` chooses from, at least `limit`; {DEFAULT_FETCH}.",
    )
    balance: float | None = Field(
        None, ge=0, le=1, description=f"`mmr`: 1 is similarity, 0 diversity; {DEFAULT_BALANCE}."
    )
    compress: bool = Field(False, description="Whether to return only the relevant strips of passages.")
    filter: PayloadFilter | None = Field(None, description="Conditions on the payload of passages.")
    graph: bool = Field(False, description="Whether to return the graph around the passages.")

    def lookup(self) -> Lookup:
        """Return the search. Raises `ValidationError` for options that do not belong to it."""
        if self.strategy == "similarity" and (self.fetch is not None or self.balance is not None):
            raise ValidationError("fetch and balance are options of the strategy mmr. Leave them out.", field="fetch")
        return Lookup(
            self.query,
            self.limit,
            self.by,
            self.mode,
            self.min_relevance,
            self.min_similarity,
            self.filter.conditions() if self.filter else EVERYTHING,
            both=True,
            model=self.model,
            strategy=self.strategy,
            fetch=self.fetch,
            balance=self.balance,
            compress=self.compress,
        )


class RankedPassage(BaseModel):
    """A passage with its figures."""

    id: str = Field(description="Id of the document and number of the passage.")
    relevance: float | None = Field(
        description="The probability, 0..1, that the passage is relevant; null if nothing graded it."
    )
    similarity: float | None = Field(
        description="The cosine, 0..1, between the vectors of question and passage; null if it has no vector."
    )
    source: str = Field(description="Name of the document.")
    title: str = Field(description="Title of the document.")
    text: str = Field(description="The text of the passage, or with `compress` its relevant strips.")
    payload: dict[str, Any] = Field(description="The whole text, the metadata and the annotations of the passage.")


class PassageAnswer(BaseModel):
    """The passages that were found."""

    by: Ranking = Field(description="What ranked the passages.")
    results: list[RankedPassage] = Field(description="The passages, best first.")
    best: float | None = Field(
        None, description="If all passages were below the least figure: the best one's figure, of what ranked them."
    )
    graph: GraphAround | None = Field(None, description="The graph around the passages, if requested.")
    degraded: list[Degraded] = Field(description="Components that failed. The request continued without them.")


class PassageSearch:
    """Finds passages in a workspace within the time that a request has."""

    def __init__(self, container: "Container", workspace: str, ends: float | None = None) -> None:
        self.workspace = workspace
        self.passages = container.passages
        self._settings = container.settings
        self._clock = container.clock
        self._ends = ends

    def seconds_left(self) -> float:
        """Return the time that is left: until the host `ends` the request, `RAG_TIMEOUT_SECONDS` at most."""
        most = self._settings.timeout_seconds
        return most if self._ends is None else min(self._ends - self._clock.monotonic(), most)

    async def within(self, work: Awaitable[T]) -> T:
        """Return the work's result. Raises `DeadlineExceeded`."""
        try:
            async with asyncio.timeout(self.seconds_left()):
                return await work
        except TimeoutError as error:
            raise DeadlineExceeded("The knowledge base did not answer in time.") from error

    async def find(self, lookup: Lookup) -> Found:
        """Return the passages. Raises `ValidationError` for a question that is too long."""
        limit = self._settings.max_prompt_characters
        if len(lookup.question) > limit:
            raise ValidationError(f"The query has {len(lookup.question)} characters; the limit is {limit}.")
        seconds = self.seconds_left() * GRADE_SHARE
        return await self.passages.find(lookup, workspace=self.workspace, seconds=seconds)

    async def with_graph(self, lookup: Lookup, *, graph: bool) -> tuple[Found, Neighbourhood | None]:
        """Return the passages, and with `graph` the entities around them."""
        found = await self.find(lookup)
        return found, await self.passages.around(found.hits, workspace=self.workspace) if graph else None

    async def answer(self, asked: PassageQuery) -> PassageAnswer:
        """Return the answer to a query."""
        found, around = await self.within(self.with_graph(asked.lookup(), graph=asked.graph))
        return PassageAnswer(
            by=asked.by,
            results=[_ranked(hit) for hit in found.hits],
            best=_rounded(found.best),
            graph=around,
            degraded=found.degraded,
        )


def _ranked(hit: Hit) -> RankedPassage:
    return RankedPassage(
        id=hit.id,
        relevance=_rounded(hit.evidence.relevance),
        similarity=_rounded(hit.evidence.similarity),
        source=hit.record.label,
        title=hit.evidence.title,
        text=hit.evidence.content,
        payload=hit.payload,
    )


def _rounded(figure: float | None) -> float | None:
    # As in `rag_context`, so that the figures of both can be compared.
    return None if figure is None else round(figure, 4)
