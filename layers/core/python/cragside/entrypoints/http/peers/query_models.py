"""What `/query` and `/query/data` are asked and answer: rag-stack's shapes, LightRAG's, and their union."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

from cragside.application.passages import Lookup
from cragside.domain.errors import ValidationError
from cragside.domain.filter import Condition, Filter
from cragside.domain.query import LONGEST_QUERY
from cragside.domain.search import DEFAULT_BALANCE, DEFAULT_FETCH, Mode, Strategy
from cragside.entrypoints.http.models import Degraded, Recalled

DEFAULT_PASSAGES = 8
_MOST_PASSAGES = 100

# What only a search by cosine can do, as requests name it.
_COSINE_ALONE = {"strategy": "strategy", "fetch": "fetchK", "balance": "lambda", "compress": "compress"}
_MMR_ALONE = {"fetch": "fetchK", "balance": "lambda"}
_NOT_OF_LIGHTRAG = {"collection", "top_passages", "min_score", "threshold", "filter", "graph_expand", *_COSINE_ALONE}

Keyword = Annotated[str, StringConstraints(max_length=1000)]


class Match(BaseModel):
    """Either of the two: `value` for equal, or among a list's, and `text` for a part of a text in any case."""

    model_config = ConfigDict(extra="forbid")

    value: str | bool | int | float | None = None
    text: str | None = None


class MustCondition(BaseModel):
    """A condition on a field of the payload; dots lead into objects."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=200)
    match: Match

    def condition(self) -> Condition:
        """As the domain has it. Raises `ValidationError` unless it matches by one of the two."""
        given = self.match.model_fields_set
        if len(given) != 1:
            raise ValidationError(f"filter: the match of {self.key} needs either value or text.")
        if "text" in given:
            return Condition(self.key, self.match.text or "", text=True)
        return Condition(self.key, self.match.value)


class PayloadFilter(BaseModel):
    """Qdrant's filter, as far as rag-stack's clients use it; all conditions have to hold."""

    model_config = ConfigDict(extra="forbid")

    must: list[MustCondition] = Field(default_factory=list, max_length=50)


class LookupBody(BaseModel):
    """The fields that rag-stack and LightRAG share, and LightRAG's own; what else LightRAG knows has no effect."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, pattern=r"\S", description="The question.")
    mode: Mode | None = Field(None, description="LightRAG's way through the graph and the vectors.")
    chunk_top_k: int | None = Field(None, ge=1, le=1000, description="Most passages; never more than 100.")
    top_k: int | None = Field(None, ge=1, le=1000, description="The same, where chunk_top_k is not given.")
    max_total_tokens: int | None = Field(None, ge=1, description="Most tokens of `response`.")
    hl_keywords: list[Keyword] = Field(default_factory=list, max_length=100, description="Searched for as well.")
    ll_keywords: list[Keyword] = Field(default_factory=list, max_length=100, description="Searched for as well.")

    @property
    def question(self) -> str:
        """What is searched for."""
        return " ".join([self.query, *self.hl_keywords, *self.ll_keywords])

    @property
    def limit(self) -> int | None:
        """Most passages, if the request says so."""
        asked = self.chunk_top_k or self.top_k
        return None if asked is None else min(asked, _MOST_PASSAGES)


class QueryBody(LookupBody):
    """rag-stack's body, LightRAG's, or both.

    `topK`, `minScore`, `filter` and `graphExpand` are rag-stack's; `strategy`, `fetchK`, `lambda`, `threshold` and
    `compress` are those of a search by cosine.
    """

    collection: str | None = Field(
        None,
        validation_alias=AliasChoices("collection", "workspace"),
        description="The workspace, which may be called `workspace` as well; the default without it.",
    )
    top_passages: int | None = Field(
        None, alias="topK", ge=1, le=_MOST_PASSAGES, description="Most passages; 8, or with `strategy` as the settings."
    )
    min_score: float | None = Field(None, alias="minScore", ge=0, le=1, description="Least score of a passage; 0.")
    threshold: float | None = Field(None, ge=0, le=1, description="The same; of both the higher one holds.")
    strategy: Strategy | Literal["preferred"] | None = Field(
        None,
        description="Asks for the plain similarity search that the settings describe: what the request does not say is "
        "theirs. `mmr` is for diversity, `preferred` is the settings' own.",
    )
    fetch: int | None = Field(
        None,
        alias="fetchK",
        ge=1,
        le=_MOST_PASSAGES,
        description=f"How many `mmr` chooses from, at least topK; {DEFAULT_FETCH}.",
    )
    balance: float | None = Field(
        None, alias="lambda", ge=0, le=1, description=f"`mmr`: 1 is relevance, 0 diversity; {DEFAULT_BALANCE}."
    )
    compress: bool | None = Field(None, description="Whether only the relevant strips of passages are told.")
    filter: PayloadFilter | None = Field(None, description="What the payload of a passage has to hold.")
    graph_expand: bool | None = Field(None, alias="graphExpand", description="Whether to tell the graph around them.")
    only_need_prompt: bool | None = Field(None, description="`response` is the prompt with evidence and question.")
    only_need_context: bool | None = Field(None, description="Changes nothing: `response` is the context in any case.")
    include_references: bool | None = Field(True, description="Whether to list the passages as references.")
    include_chunk_content: bool | None = Field(False, description="Whether references hold their text.")

    def lookup(self) -> Lookup:
        """By LightRAG's mode; by cosine if there is none and a field that is not LightRAG's.

        Raises `ValidationError` for options that a search with a mode, or by mere similarity, does not have.
        """
        given = {name for name in self.model_fields_set if getattr(self, name) is not None}
        of_cosine = [name for field, name in _COSINE_ALONE.items() if field in given]
        if self.mode and of_cosine:
            raise ValidationError(f"{of_cosine[0]}: a search with a mode has no such option. Leave mode out.")
        of_mmr = [name for field, name in _MMR_ALONE.items() if field in given]
        if of_mmr and self.strategy not in ("mmr", "preferred"):
            raise ValidationError(f'{of_mmr[0]}: an option of mmr. Ask for it with "strategy": "mmr", or leave it out.')
        mode = self.mode or (None if given & _NOT_OF_LIGHTRAG else "mix")
        default_limit, default_threshold = (DEFAULT_PASSAGES, -1.0) if self.strategy is None else (None, None)
        return Lookup(
            self.question,
            self.top_passages or self.limit or default_limit,
            mode,
            default_threshold if self._least_score is None else self._least_score,
            Filter(tuple(each.condition() for each in self.filter.must) if self.filter else ()),
            strategy="similarity" if self.strategy is None else None if self.strategy == "preferred" else self.strategy,
            fetch=self.fetch,
            balance=self.balance,
            compress=bool(self.compress),
        )

    @property
    def _least_score(self) -> float | None:
        given = [score for score in (self.min_score, self.threshold) if score is not None]
        # Scores end at 0 where cosines do not: a least score of 0 lets everything through.
        return (max(given) or -1.0) if given else None


class Reference(BaseModel):
    """A passage as LightRAG cites it: `[reference_id]` in `response`."""

    reference_id: str
    file_path: str
    content: list[str] | None = None


class FoundPassage(BaseModel):
    """A passage as rag-stack tells it. `id` is the document's id and the number of the passage.

    `text` is what `response` quotes of it: with `compress` its relevant strips, while the payload has it whole.
    """

    id: str
    score: float | None = Field(description="0..1: the cosine, or with a mode the ranking's.")
    source: str
    text: str
    payload: dict[str, Any]


class GraphEntity(BaseModel):
    """An entity in the passages or near them."""

    name: str
    type: str
    description: str


class GraphRelationship(BaseModel):
    """What connects two of the entities."""

    source: str
    target: str
    type: str
    description: str


class GraphAround(BaseModel):
    """The graph around the passages. `capped`: there is more of it."""

    entities: list[GraphEntity]
    relationships: list[GraphRelationship]
    capped: bool


class RecalledPassage(Recalled):
    """What was said in an earlier exchange. It is no evidence and has no number."""

    text: str


class QueryAnswer(BaseModel):
    """`response` is the cited evidence as text, "" when there is none; no model has written it."""

    response: str
    references: list[Reference] | None
    response_time: float = Field(description="Seconds.")
    llm_generated: Literal[False]
    ok: Literal[True]
    results: list[FoundPassage]
    message: str | None = Field(None, description="Says so when nothing was found.")
    best_score: float | None = Field(
        None, description="When nothing was found: the best cosine there is below the least one that was asked for."
    )
    graph: GraphAround | None = None
    memory: list[RecalledPassage] | None = Field(
        None, description="For LightRAG's bodies: what was said before, which follows the evidence in `response`."
    )
    degraded: list[Degraded] | None = Field(None, description="For LightRAG's bodies: why memory is missing.")


class DataEntity(BaseModel):
    """An entity that the passages mention. `source_id` are the ids of these passages."""

    entity_name: str
    entity_type: str
    description: str
    source_id: str
    file_path: str
    created_at: str
    reference_id: str


class DataRelationship(BaseModel):
    """What connects two of the entities. `weight` is how many of the passages mention both."""

    src_id: str
    tgt_id: str
    description: str
    keywords: str
    weight: float
    source_id: str
    file_path: str
    created_at: str
    reference_id: str


class DataChunk(BaseModel):
    """A passage."""

    reference_id: str
    content: str
    file_path: str
    chunk_id: str


class QueryData(BaseModel):
    """What was found."""

    entities: list[DataEntity]
    relationships: list[DataRelationship]
    chunks: list[DataChunk]
    references: list[Reference]


class QueryDataAnswer(BaseModel):
    """LightRAG's answer with the data that an answer would be made of; `failure` when nothing was found."""

    status: Literal["success", "failure"]
    message: str
    data: QueryData
    metadata: dict[str, Any]
