"""rag-stack's enrichment routes: the progress of annotating documents, and queueing it again.

rag-stack calls annotating a document `enrichment`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Path, Request
from pydantic import AliasChoices, BaseModel, Field

from cragside.application.intake import unclear
from cragside.domain.errors import NotFound
from cragside.domain.indexing import DocumentRecord, EnrichmentStatus, Passage
from cragside.entrypoints.http.peers.failures import RagStackFailure, peer_router
from cragside.entrypoints.http.peers.rag_stack.camel_model import CamelModel
from cragside.entrypoints.http.request_access import AppContainer, QueryCollection, choose_workspace
from cragside.ports.workspaces import Library


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
    """What to annotate: everything unfinished or failed, or with `force` everything."""

    collection: str | None = Field(
        None,
        validation_alias=AliasChoices("collection", "workspace"),
        description="The workspace; the default without it.",
    )
    force: bool = Field(False, description="Whether to repeat finished work.")


class EnqueueAnswer(BaseModel):
    """How many tasks were queued."""

    ok: Literal[True] = Field(description="Always true.")
    enqueued: int = Field(description="Number of tasks that were queued.")


router = peer_router("rag-stack", RagStackFailure)


@router.get("/enrichment/status/{baseId:path}", response_model_exclude_none=True)
async def enrichment_status(
    container: AppContainer,
    base_id: Annotated[str, Path(alias="baseId", description="Its id, the client's id for it, or its source.")],
    workspace: QueryCollection,
) -> DocumentEnrichment:
    """The progress of a document."""
    library = (await container.workspaces.open(workspace)).documents
    record = await _identified(library, base_id)
    if record is None:
        raise NotFound(f"No chunks found for baseId: {base_id}")
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


async def _identified(library: Library, base_id: str) -> DocumentRecord | None:
    """The document by its id, the client's id for it, its source, or its name. Raises for a name of several."""
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
