"""How far the enrichment of documents has come, and setting it off again: rag-stack's routes."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import AliasChoices, BaseModel, Field

from cragside.application.references import unclear
from cragside.bootstrap import Container
from cragside.domain.errors import NotFound
from cragside.domain.indexing import DocumentRecord, EnrichmentStatus, Passage
from cragside.entrypoints.http.peers.failures import RagStackFailure, peer_router
from cragside.entrypoints.http.peers.rag_stack.camel_model import CamelModel
from cragside.entrypoints.http.tenancy import Access
from cragside.ports.library import Library

Collection = Annotated[str | None, Query(description="The workspace; the default without it.")]


class PassageCounts(BaseModel):
    """Passages by the state of their enrichment."""

    enriched: int = 0
    failed: int = 0
    pending: int = 0
    processing: int = 0
    none: int = 0


class ChunkCounts(PassageCounts):
    """The passages of a document, in all and by the state of their enrichment."""

    total: int


class DocumentEnrichment(CamelModel):
    """A document's enrichment. `extracted_at` is when the last part of it was enriched, ISO 8601 in UTC.

    `metadata` is what was found out: `tier2` of the last passage, and `tier3` of the document with its `extraction`.
    """

    base_id: str
    status: EnrichmentStatus | Literal["mixed"]
    chunks: ChunkCounts
    extracted_at: str | None = None
    metadata: dict[str, Any] | None = None


class QueueCounts(CamelModel):
    """Tasks that wait, are being done, and were given up."""

    pending: int
    processing: int
    dead_letter: int


class EnrichmentStats(BaseModel):
    """The tasks and the passages of a workspace."""

    queue: QueueCounts
    totals: PassageCounts


class EnqueueRequest(BaseModel):
    """What to enrich: what is not done yet, failures included, or with `force` everything."""

    collection: str | None = Field(None, validation_alias=AliasChoices("collection", "workspace"))
    force: bool = False


class EnqueueAnswer(BaseModel):
    """How many tasks were put into the queue."""

    ok: Literal[True]
    enqueued: int


def router(container: Container, access: Access) -> APIRouter:
    """`/enrichment/status/{baseId}`, `/enrichment/stats` and `/enrichment/enqueue`."""
    routes = peer_router("rag-stack", RagStackFailure, limit=container.settings.max_body_bytes)

    @routes.get("/enrichment/status/{baseId:path}", response_model_exclude_none=True)
    async def status(
        request: Request,
        base_id: Annotated[str, Path(alias="baseId", description="Its id, the client's id for it, or its source.")],
        collection: Collection = None,
    ) -> DocumentEnrichment:
        """How far a document has come."""
        library = (await container.workspaces.open(access.workspace(request, collection))).documents
        record = await _identified(library, base_id)
        if record is None:
            raise NotFound(f"No chunks found for baseId: {base_id}")
        return _status(base_id, record, await library.passages(record.id))

    @routes.get("/enrichment/stats")
    async def stats(request: Request, collection: Collection = None) -> EnrichmentStats:
        """How much there is to do in a workspace, and how much is done."""
        workspace = access.workspace(request, collection)
        tasks = await container.intake.backlog(workspace)
        passages = await (await container.workspaces.open(workspace)).documents.counts()
        return EnrichmentStats(
            queue=QueueCounts(pending=tasks.pending, processing=tasks.processing, dead_letter=tasks.dead),
            totals=PassageCounts.model_validate(passages),
        )

    @routes.post("/enrichment/enqueue")
    async def enqueue(request: Request, body: EnqueueRequest | None = None) -> EnqueueAnswer:
        """Have done what is not done yet, failures included; with `force` everything anew."""
        asked = body or EnqueueRequest()
        workspace = access.workspace(request, asked.collection)
        enqueued = await container.intake.restart(workspace=workspace, force=asked.force)
        return EnqueueAnswer(ok=True, enqueued=enqueued)

    return routes


async def _identified(library: Library, base_id: str) -> DocumentRecord | None:
    """The document by its own id, by the id that a client gave it, by its source, or by its name if no other has it."""
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
