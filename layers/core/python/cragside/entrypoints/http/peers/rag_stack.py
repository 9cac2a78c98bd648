"""rag-stack's routes: ingest texts and pages, annotate documents, and read an entity of the graph."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from fastapi import Path, Query, Request
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from cragside.application.intake import Intake, unclear
from cragside.bootstrap import Container
from cragside.domain.document import DocType
from cragside.domain.errors import Forbidden, NotFound, PayloadTooLarge
from cragside.domain.indexing import Acceptance, DocumentRecord, EnrichmentStatus, Passage
from cragside.entrypoints.http.errors import RagStackFailure, peer_router
from cragside.entrypoints.http.models import Shape
from cragside.entrypoints.http.request_access import (
    AppContainer,
    QueryCollection,
    choose_workspace,
    note_documents,
    seconds_of,
)
from cragside.ports.files import FetchFailed

router = peer_router("rag-stack", RagStackFailure)

_MOST_ITEMS = 1000
_MOST_URLS = 50
# Pages that are fetched, and texts that are added, at the same time.
_FETCHES = 5
_TEXTS = 8


class CamelModel(Shape):
    """A model whose fields are written in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class IngestItem(CamelModel):
    """A text, or a URL to fetch it from."""

    id: str | None = Field(None, description="The client's own id for it; `/enrichment/status` finds it by this id.")
    text: str | None = Field(None, description="The text; without it the URL is fetched.")
    url: str | None = Field(None, description="http or https, at a public address.")
    source: str | None = Field(
        None, description="Names the document. Default: the URL. Without a URL it identifies the text, too."
    )
    doc_type: DocType | None = Field(None, description="The kind of text; detected if missing.")
    metadata: dict[str, Any] | None = Field(None, description="Added to the payload of each passage.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.text and not self.url:
            raise ValueError("each item must have either 'text' or 'url'")
        if not self.url and not self.source:
            raise ValueError("'source' is required when 'url' is not provided")
        return self

    @property
    def identity(self) -> str:
        """Its URL, else its source, which identify it besides its id."""
        return self.url or self.source or ""

    @property
    def to_fetch(self) -> bool:
        """Tell if its text must be fetched."""
        return not self.text


class IngestRequest(CamelModel):
    """The items to add. An unusable item does not affect the others."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [{"source": "harbour.md", "text": "The keeper lights the lamp."}]}]}
    )

    collection: str | None = Field(
        None,
        validation_alias=AliasChoices("collection", "workspace"),
        description="The workspace; the default without it. Its field may also be called `workspace`.",
    )
    enrich: bool = Field(True, description="Whether to annotate the text (tiers 2 and 3 and the graph).")
    items: list[IngestItem] = Field(min_length=1, max_length=_MOST_ITEMS, description="The texts and pages.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        urls = sum(item.url is not None for item in self.items)
        if urls > _MOST_URLS:
            raise ValueError(f"maximum {_MOST_URLS} URL items per request (found {urls})")
        return self


class ItemFailure(BaseModel):
    """An item that was refused. `status` is the HTTP status of its page, if there was an answer."""

    url: str | None = Field(None, description="URL of the item.")
    source: str | None = Field(None, description="Source of the item, if it has no URL.")
    status: int | None = Field(description="HTTP status of the page; null without an answer.")
    reason: str = Field(
        description="`fetch_failed`, `timeout`, `ssrf_blocked`, `too_large`, `redirect_limit`, "
        "`unsupported_content_type: ...`, `unreadable: ...`, `missing_text: ...`, `missing_source: ...`, "
        "`duplicate_source: ...`, `limit_reached: ...` or `fetching_is_off`"
    )


class Enqueued(CamelModel):
    """Numbers of passages that will be annotated, in total and by document type."""

    enqueued: int = Field(description="Passages that will be annotated.")
    doc_types: dict[str, int] = Field(description="The same number by document type.")


class IngestAnswer(BaseModel):
    """Counts what was added: passages (`upserted`) and pages (`fetched`). All but the `queued` ones are searchable."""

    ok: Literal[True] = Field(description="Always true.")
    upserted: int = Field(description="Number of passages that were stored.")
    queued: int | None = Field(
        None, description="Number of those that a worker makes searchable soon: of long texts, and with a model host."
    )
    fetched: int | None = Field(None, description="Number of pages that were fetched.")
    enrichment: Enqueued | None = Field(None, description="What will be annotated.")
    errors: list[ItemFailure] | None = Field(None, description="The refused items.")


@router.post("/ingest", response_model_exclude_unset=True)
async def ingest(request: Request, body: IngestRequest, container: AppContainer) -> IngestAnswer:
    """Add texts and pages. Items in the answer are stored durably; refused items are in `errors`."""
    workspace = choose_workspace(request, body.collection)
    batch = _Batch(request, container.intake, workspace, enrich=body.enrich)
    outcomes = await asyncio.gather(*map(batch.take, body.items))
    taken = [(item, each) for item, each in zip(body.items, outcomes, strict=True) if isinstance(each, Acceptance)]
    note_documents(request, (acceptance.record.id for _, acceptance in taken))
    return _answer(taken, [each for each in outcomes if isinstance(each, ItemFailure)], enrich=body.enrich)


class _Batch:
    """Adds the items of one request."""

    def __init__(self, request: Request, intake: Intake, workspace: str, *, enrich: bool) -> None:
        self._request = request
        self._intake = intake
        self._workspace = workspace
        self._enrich = enrich
        self._seen: dict[tuple[str, str | None], str | None] = {}
        self._fetches = asyncio.Semaphore(_FETCHES)
        self._texts = asyncio.Semaphore(_TEXTS)

    async def take(self, item: IngestItem) -> Acceptance | ItemFailure:
        """Add an item, or say why not."""
        if self._seen.setdefault((item.identity, item.id), item.text) != item.text:
            # Both would be one document, and the later text would replace the earlier.
            return _refused(item, "duplicate_source: another item of this request has it; give each an id")
        try:
            if item.to_fetch:
                async with self._fetches:
                    return await self._page(item)
            refused = _unusable(item)
            if refused is not None:
                return refused
            async with self._texts:
                return await self._text(item)
        except FetchFailed as error:
            return _refused(item, error.reason, error.status)
        except PayloadTooLarge:
            return _refused(item, "too_large")
        except Forbidden as error:
            return _refused(item, f"limit_reached: {error.message}")
        except TimeoutError:
            return _refused(item, "timeout")

    async def _page(self, item: IngestItem) -> Acceptance:
        async with asyncio.timeout(seconds_of(self._request)):
            return await self._intake.page(item.url or "", name=_given(item.source), **self._options(item))

    async def _text(self, item: IngestItem) -> Acceptance:
        return await self._intake.written(
            item.text or "", name=_name(item), source=item.identity, **self._options(item)
        )

    def _options(self, item: IngestItem) -> dict[str, Any]:
        about = {"doc_type": item.doc_type, "metadata": item.metadata, "track": item.id or ""}
        return {**about, "workspace": self._workspace, "enrich": self._enrich}


def _given(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _name(item: IngestItem) -> str:
    """Return the source, else the URL without query and fragment."""
    if source := _given(item.source):
        return source
    return (item.url or "").partition("#")[0].partition("?")[0]


def _unusable(item: IngestItem) -> ItemFailure | None:
    if _given(item.text) is None:
        return _refused(item, "missing_text: item has no text content")
    if item.url is None and _given(item.source) is None:
        return _refused(item, "missing_source: item has no source identifier")
    return None


def _refused(item: IngestItem, reason: str, status: int | None = None) -> ItemFailure:
    named = {"url": item.url} if item.url else {"source": item.source}
    return ItemFailure(**named, status=status, reason=reason)


def _answer(
    taken: Sequence[tuple[IngestItem, Acceptance]], refused: Sequence[ItemFailure], *, enrich: bool
) -> IngestAnswer:
    to_annotate: Counter[str] = Counter()
    for _, acceptance in taken:
        if enrich and acceptance.tasks:
            to_annotate[acceptance.record.doc_type] += acceptance.record.passages
    optional = {
        "queued": sum(acceptance.record.passages for _, acceptance in taken if not acceptance.record.searchable),
        "fetched": sum(item.to_fetch for item, _ in taken),
        "enrichment": Enqueued(enqueued=to_annotate.total(), doc_types=dict(to_annotate)) if to_annotate else None,
        "errors": refused,
    }
    upserted = sum(acceptance.record.passages for _, acceptance in taken)
    return IngestAnswer(ok=True, upserted=upserted, **{name: value for name, value in optional.items() if value})


class PassageCounts(BaseModel):
    """Numbers of passages by the state of their annotation."""

    enriched: int = Field(0, description="Annotated passages.")
    failed: int = Field(0, description="Passages whose annotation failed.")
    pending: int = Field(0, description="Passages that wait.")
    processing: int = Field(0, description="Passages that a worker annotates now.")
    none: int = Field(0, description="Passages that are not to be annotated.")


class ChunkCounts(PassageCounts):
    """Numbers of a document's passages, in total and by the state of their annotation."""

    total: int = Field(description="All passages.")


class DocumentEnrichment(CamelModel):
    """A document's annotations. `extracted_at` is when its last part was annotated, ISO 8601 in UTC.

    `metadata` has `tier2` of the last passage, and `tier3` of the document with its `extraction`.
    """

    base_id: str = Field(description="The requested id.")
    status: EnrichmentStatus | Literal["mixed"] = Field(
        description="The progress of the annotation; `mixed` if passages differ."
    )
    chunks: ChunkCounts = Field(description="Numbers of passages by progress.")
    extracted_at: str | None = Field(None, description="When the last part was annotated, ISO 8601 in UTC.")
    metadata: dict[str, Any] | None = Field(
        None, description="`tier2` of the last annotated passage and `tier3` of the document."
    )


class QueueCounts(CamelModel):
    """Numbers of tasks that are queued, in process, and failed for good."""

    pending: int = Field(description="Tasks that wait.")
    processing: int = Field(description="Tasks that a worker processes now.")
    dead_letter: int = Field(description="Tasks that were given up.")


class EnrichmentStats(BaseModel):
    """The tasks and the passages of a workspace."""

    queue: QueueCounts = Field(description="The workspace's tasks.")
    totals: PassageCounts = Field(description="The workspace's passages by progress.")


class EnqueueRequest(BaseModel):
    """Says what to annotate: everything unfinished or failed, or with `force` everything."""

    collection: str | None = Field(
        None,
        validation_alias=AliasChoices("collection", "workspace"),
        description="The workspace; the default without it.",
    )
    force: bool = Field(False, description="Whether to repeat finished work.")


class EnqueueAnswer(BaseModel):
    """The number of tasks that were queued."""

    ok: Literal[True] = Field(description="Always true.")
    enqueued: int = Field(description="Number of tasks that were queued.")


@router.get("/enrichment/status/{baseId:path}", response_model_exclude_none=True)
async def enrichment_status(
    container: AppContainer,
    base_id: Annotated[str, Path(alias="baseId", description="Its id, the client's id for it, or its source.")],
    workspace: QueryCollection,
) -> DocumentEnrichment:
    """The progress of a document."""
    record = await _identified(container, workspace, base_id)
    if record is None:
        raise NotFound(f"No chunks found for baseId: {base_id}")
    library = (await container.workspaces.open(workspace)).documents
    return _status(base_id, record, await library.passages(record.id))


@router.get("/enrichment/stats")
async def enrichment_stats(container: AppContainer, workspace: QueryCollection) -> EnrichmentStats:
    """The tasks and the passages of a workspace."""
    tasks = await container.intake.backlog(workspace)
    passages = await (await container.workspaces.open(workspace)).documents.counts()
    return EnrichmentStats(
        queue=QueueCounts(pending=tasks.pending, processing=tasks.processing, dead_letter=tasks.dead),
        totals=PassageCounts.model_validate(passages),
    )


@router.post("/enrichment/enqueue")
async def enqueue_enrichment(
    request: Request, container: AppContainer, body: EnqueueRequest | None = None
) -> EnqueueAnswer:
    """Queue unfinished and failed work again, with `force` all work."""
    asked = body or EnqueueRequest()
    workspace = choose_workspace(request, asked.collection)
    enqueued = await container.intake.restart(workspace=workspace, force=asked.force)
    return EnqueueAnswer(ok=True, enqueued=enqueued)


async def _identified(container: Container, workspace: str, base_id: str) -> DocumentRecord | None:
    """Find a document by its id, the client's id for it, its source, or its name. Refuses a name of several."""
    library = (await container.workspaces.open(workspace)).documents
    record = await library.document(base_id)
    if record is not None:
        return record
    tracked, _ = await library.documents(track=base_id, limit=1)
    if tracked:
        return tracked[0]
    record = await library.sourced(base_id)
    if record is not None:
        return record
    named = await library.named(base_id)
    if len(named) > 1:
        raise unclear(base_id, named)
    return named[0] if named else None


def _status(base_id: str, record: DocumentRecord, passages: Sequence[Passage]) -> DocumentEnrichment:
    counts = Counter[str](passage.enrichment for passage in passages)
    metadata = {
        "tier2": next((passage.tier2 for passage in reversed(passages) if passage.tier2), None),
        "tier3": record.tier3,
    }
    return DocumentEnrichment(
        base_id=base_id,
        status=record.enrichment,
        chunks=ChunkCounts.model_validate({**counts, "total": len(passages)}),
        extracted_at=max((part.enriched_at for part in record.parts if part.enriched_at), default=None),
        metadata={name: dict(value) for name, value in metadata.items() if value} or None,
    )


class EntityDetails(CamelModel):
    """An entity. Times are ISO 8601 in UTC; `mention_count` is how many passages name it."""

    name: str = Field(description="Name of the entity.")
    type: str = Field(description="Its type.")
    description: str = Field(description="What the documents say about it.")
    first_seen: str | None = Field(description="When the first document with it was added, ISO 8601 in UTC.")
    last_seen: str | None = Field(description="When the last document with it was added, ISO 8601 in UTC.")
    mention_count: int = Field(
        validation_alias="mentions",
        serialization_alias="mentionCount",
        description="Number of passages that mention it.",
    )


class EntityConnection(Shape):
    """A relationship, as seen from the entity."""

    entity: str = Field(description="Name of the other entity.")
    relationship: str = Field(description="Kind of the relationship.")
    direction: Literal["incoming", "outgoing"] = Field(description="Whether it leads to the entity or away from it.")
    description: str = Field(description="What the documents say about it.")


class MentioningDocument(BaseModel):
    """A document that mentions the entity."""

    id: str = Field(description="Id of the document.")
    source: str = Field(description="Name of the document.")


class EntityAnswer(BaseModel):
    """An entity with its connections, strongest first, and the documents that mention it."""

    entity: EntityDetails = Field(description="The entity.")
    connections: list[EntityConnection] = Field(description="Its relationships, strongest first.")
    documents: list[MentioningDocument] = Field(description="The documents that mention it.")


@router.get("/graph/entity/{name:path}")
async def graph_entity(
    container: AppContainer,
    name: Annotated[str, Path(description="The entity's name, in any case.")],
    workspace: QueryCollection,
    limit: Annotated[int, Query(ge=1, le=500, description="Most connections, and most documents.")] = 100,
) -> EntityAnswer:
    """An entity with its connections and the documents that mention it."""
    graph = (await container.workspaces.open(workspace)).graph
    view = await graph.entity(name, connections=limit, documents=limit)
    if view is None:
        raise NotFound("Entity not found")
    return EntityAnswer(
        entity=view.entity,
        connections=view.connections,
        documents=[MentioningDocument(id=identifier, source=source) for identifier, source in view.documents],
    )
