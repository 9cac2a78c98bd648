"""LightRAG's way in: texts, and what became of them.

LightRAG's bots keep their conversations by these routes. An exchange, known by its name or its form, goes into memory.
Any other text is a document. Both are told of here.
"""

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Request
from pydantic import BaseModel, Field

from cragside.bootstrap import Container
from cragside.domain.errors import ValidationError
from cragside.domain.exchange import is_exchange
from cragside.domain.indexing import Acceptance, DocumentRecord
from cragside.domain.memory_name import memory_of
from cragside.entrypoints.http.peers.failures import LightRagFailure, peer_router
from cragside.entrypoints.http.tenancy import Access
from cragside.ports.library import Library

DocumentStage = Literal["PENDING", "PROCESSING", "PROCESSED", "FAILED"]

_SUMMARY_CHARACTERS = 100
# Documents of one track that are told of.
_MOST_TRACKED = 1000

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class InsertTextRequest(BaseModel):
    """A text. A `file_source` that is taken already is no obstacle: the text then gets a name that is free."""

    text: Text
    file_source: str | None = Field(None, description="What to call it; made up when missing.")


class InsertTextsRequest(BaseModel):
    """Several texts, with as many names, if any."""

    texts: list[Text] = Field(min_length=1, max_length=1000)
    file_sources: list[str] | None = None


class InsertAnswer(BaseModel):
    """The texts are taken and will not get lost. `track_id` is what to ask after them by."""

    status: Literal["success"]
    message: str
    track_id: str


class TrackedDocument(BaseModel):
    """A document, as LightRAG tells it."""

    id: str
    content_summary: str
    content_length: int
    status: Literal["pending", "processing", "processed", "failed"]
    created_at: str
    updated_at: str
    track_id: str | None
    chunks_count: int
    error_msg: str | None
    metadata: dict[str, Any]
    file_path: str


class TrackStatus(BaseModel):
    """The documents of a track."""

    track_id: str
    documents: list[TrackedDocument]
    total_count: int
    status_summary: dict[DocumentStage, int]


class StatusCounts(BaseModel):
    """How many documents have come how far."""

    status_counts: dict[DocumentStage, int]


class PipelineStatus(BaseModel):
    """What the worker has before it. `batchs` are tasks, of which `cur_batch` are being done."""

    busy: bool
    job_name: str
    job_start: str | None
    docs: int
    batchs: int
    cur_batch: int
    latest_message: str
    history_messages: list[str]


class DeleteRequest(BaseModel):
    """The documents to forget. LightRAG's other fields have no effect."""

    doc_ids: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=1000)


class DeleteAnswer(BaseModel):
    """The documents are gone when this is answered."""

    status: Literal["deletion_started"]
    message: str
    doc_id: str


def router(container: Container, access: Access) -> APIRouter:
    """`/documents/...`."""
    routes = peer_router("LightRAG", LightRagFailure, limit=container.settings.max_body_bytes, prefix="/documents")

    async def libraries_of(request: Request) -> list[Library]:
        """The workspace's documents, and its memory."""
        workspace = access.workspace(request)
        return [(await container.workspaces.open(name)).documents for name in (workspace, memory_of(workspace))]

    async def progress_of(request: Request) -> Counter[str]:
        told = Counter[str]()
        for library in await libraries_of(request):
            told.update(asdict(await library.progress()))
        return told

    @routes.post("/text")
    async def insert_text(request: Request, body: InsertTextRequest) -> InsertAnswer:
        """Take a text in; a worker makes it searchable within seconds."""
        insertion = _Insertion(container, access.workspace(request))
        await insertion.take(body.text, body.file_source)
        access.note(request, insertion.documents)
        return insertion.answer()

    @routes.post("/texts")
    async def insert_texts(request: Request, body: InsertTextsRequest) -> InsertAnswer:
        """Take texts in."""
        names = body.file_sources or [""] * len(body.texts)
        if len(names) != len(body.texts):
            raise ValidationError(f"There are {len(body.texts)} texts and {len(names)} file_sources.")
        insertion = _Insertion(container, access.workspace(request))
        for text, name in zip(body.texts, names, strict=True):
            await insertion.take(text, name)
        access.note(request, insertion.documents)
        return insertion.answer()

    @routes.get("/track_status/{track_id}")
    async def track_status(request: Request, track_id: Annotated[str, Path()]) -> TrackStatus:
        """What became of the texts of an insertion; an unknown track has no documents."""
        documents: list[TrackedDocument] = []
        summary, total = Counter[DocumentStage](), 0
        for library in await libraries_of(request):
            records, count = await library.documents(track=track_id, limit=_MOST_TRACKED)
            documents += [await _tracked(library, record) for record in records]
            summary.update(_progress(record) for record in records)
            total += count
        return TrackStatus(track_id=track_id, documents=documents, total_count=total, status_summary=dict(summary))

    @routes.get("/status_counts")
    async def status_counts(request: Request) -> StatusCounts:
        """How many documents have come how far."""
        return StatusCounts(status_counts=_counted(await progress_of(request)))

    @routes.get("/pipeline_status")
    async def pipeline_status(request: Request) -> PipelineStatus:
        """What is still to be done."""
        tasks = await container.intake.backlog(access.workspace(request))
        progress = await progress_of(request)
        message = f"{tasks.pending} tasks wait, {tasks.processing} are being done, {tasks.dead} were given up."
        return PipelineStatus(
            busy=tasks.pending + tasks.processing > 0,
            job_name="indexing",
            job_start=None,
            docs=progress["waiting"] + progress["underway"],
            batchs=tasks.pending + tasks.processing,
            cur_batch=tasks.processing,
            latest_message=message,
            history_messages=[],
        )

    @routes.delete("/delete_document")
    async def delete_document(request: Request, body: Annotated[DeleteRequest, Body()]) -> DeleteAnswer:
        """Forget documents; what only they contributed to the graph follows."""
        workspace = access.workspace(request)
        access.note(request, body.doc_ids)
        missing = [
            identifier
            for identifier in body.doc_ids
            if not await container.intake.delete_either(identifier, workspace=workspace)
        ]
        deleted = len(body.doc_ids) - len(missing)
        message = f"{deleted} documents are deleted." + (f" There is no {', '.join(missing)}." if missing else "")
        return DeleteAnswer(status="deletion_started", message=message, doc_id=", ".join(body.doc_ids))

    return routes


class _Insertion:
    """Texts that are taken in together, under one track."""

    def __init__(self, container: Container, workspace: str) -> None:
        self._intake = container.intake
        self._memory = container.memory
        self._workspace = workspace
        self._track = _stamped("insert")
        self._acceptances: list[Acceptance] = []

    async def take(self, text: str, name: str | None) -> None:
        """Take a text in, under a name of its own."""
        named = name if name and name.strip() else f"{_stamped('text')}.txt"
        workspace, track = self._workspace, self._track
        if is_exchange(named, text):
            taken = await self._memory.keep(text, name=named, workspace=workspace, track=track)
        else:
            taken = await self._intake.written(text, name=named, workspace=workspace, track=track, rename=True)
        self._acceptances.append(taken)

    @property
    def documents(self) -> list[str]:
        """The ids of what was taken in."""
        return [acceptance.record.id for acceptance in self._acceptances]

    def answer(self) -> InsertAnswer:
        """What to tell the client. What was there already is found by the track that it came by."""
        records = [acceptance.record for acceptance in self._acceptances]
        taken = sum(acceptance.outcome != "unchanged" for acceptance in self._acceptances)
        known = "" if taken == len(records) else f" {len(records) - taken} were there already."
        track = self._track if taken else records[0].track or self._track
        message = f"{taken} texts are taken; they become searchable in the background.{known}"
        return InsertAnswer(status="success", message=message, track_id=track)


def _stamped(kind: str) -> str:
    """A name that no other has: the kind, the time in UTC, and chance."""
    return f"{kind}_{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"


def _progress(record: DocumentRecord) -> DocumentStage:
    """Processed is what needs no more work; a text is searchable while its enrichment is being processed."""
    match record.status:
        case "failed":
            return "FAILED"
        case "pending":
            return "PROCESSING" if any(part.embedded for part in record.parts) else "PENDING"
        case "searchable" if record.enrichment != "none":
            return "PROCESSING"
        case _:
            return "PROCESSED"


async def _tracked(library: Library, record: DocumentRecord) -> TrackedDocument:
    passages = await library.passages(record.id, 0)
    return TrackedDocument(
        id=record.id,
        content_summary=passages[0].text[:_SUMMARY_CHARACTERS] if passages else "",
        content_length=record.characters,
        status=_progress(record).lower(),
        created_at=record.created_at,
        updated_at=record.updated_at,
        track_id=record.track or None,
        chunks_count=record.passages,
        error_msg=record.error or None,
        metadata=dict(record.metadata),
        file_path=record.label,
    )


def _counted(progress: Mapping[str, int]) -> dict[DocumentStage, int]:
    return {
        "PENDING": progress["waiting"],
        "PROCESSING": progress["underway"],
        "PROCESSED": progress["done"],
        "FAILED": progress["failed"],
    }
