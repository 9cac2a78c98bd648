"""LightRAG's document routes: add texts, and follow their progress.

LightRAG's bots store conversations by these routes. A text with the name or the form of an exchange goes into memory.
Any other text is a document. These routes report both.
"""

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.bootstrap import Container
from cragside.domain.errors import ValidationError
from cragside.domain.exchange import is_exchange
from cragside.domain.faults import counted
from cragside.domain.indexing import Acceptance, DocumentRecord
from cragside.domain.names import memory_of
from cragside.entrypoints.end_user_in_request import end_user_of
from cragside.entrypoints.http.peers.failures import LightRagFailure, peer_router
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, note_documents
from cragside.ports.workspaces import Library

DocumentStage = Literal["PENDING", "PROCESSING", "PROCESSED", "FAILED"]

_SUMMARY_CHARACTERS = 100
# Most documents of one track in an answer.
_MOST_TRACKED = 1000

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class InsertTextRequest(BaseModel):
    """A text. If its `file_source` exists already, the text gets another name."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The keeper lights the lamp at dusk.", "file_source": "harbour.md"}]}
    )

    text: Text = Field(description="The text to add.")
    file_source: str | None = Field(None, description="The document's name; generated if missing.")


class InsertTextsRequest(BaseModel):
    """Several texts, and as many names or none."""

    texts: list[Text] = Field(min_length=1, max_length=1000, description="The texts to add.")
    file_sources: list[str] | None = Field(None, description="The names of the texts, in their order.")


class InsertAnswer(BaseModel):
    """The texts are stored durably. `track_id` finds them at `/documents/track_status`."""

    status: Literal["success"] = Field(description="Always `success`.")
    message: str = Field(description="What happened, for people.")
    track_id: str = Field(description="Ask `/documents/track_status` for the progress with it.")


class TrackedDocument(BaseModel):
    """A document in LightRAG's form."""

    id: str = Field(description="Id of the document.")
    content_summary: str = Field(description="The beginning of the text.")
    content_length: int = Field(description="Length of the text in characters.")
    status: Literal["pending", "processing", "processed", "failed"] = Field(description="The progress of the document.")
    created_at: str = Field(description="When it was added, ISO 8601 in UTC.")
    updated_at: str = Field(description="When it changed last, ISO 8601 in UTC.")
    track_id: str | None = Field(description="Id of the request that added it.")
    chunks_count: int = Field(description="Number of its passages.")
    error_msg: str | None = Field(description="Why it failed; null if it did not.")
    metadata: dict[str, Any] = Field(description="Its metadata.")
    file_path: str = Field(description="Its name.")


class TrackStatus(BaseModel):
    """The documents of a track."""

    track_id: str = Field(description="The requested id.")
    documents: list[TrackedDocument] = Field(description="The documents of that request.")
    total_count: int = Field(description="Their number.")
    status_summary: dict[DocumentStage, int] = Field(description="Their number by status.")


class StatusCounts(BaseModel):
    """The number of documents in each stage."""

    status_counts: dict[DocumentStage, int] = Field(description="Number of documents by status.")


class PipelineStatus(BaseModel):
    """The unfinished work. `batchs` counts tasks, `cur_batch` those in process."""

    busy: bool = Field(description="Whether there are unfinished tasks.")
    job_name: str = Field(description="Name of the current job.")
    job_start: str | None = Field(description="Always null: cragside has no jobs in LightRAG's sense.")
    docs: int = Field(description="Number of unfinished tasks.")
    batchs: int = Field(description="The same number.")
    cur_batch: int = Field(description="Number of tasks that are processed now.")
    latest_message: str = Field(description="The state in words.")
    history_messages: list[str] = Field(description="The state in words.")


class DeleteRequest(BaseModel):
    """The documents to delete. LightRAG's other fields have no effect."""

    doc_ids: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1, max_length=1000, description="Ids of the documents."
    )


class DeleteAnswer(BaseModel):
    """The documents are deleted before this answer is sent."""

    status: Literal["deletion_started"] = Field(description="Always `deletion_started`.")
    message: str = Field(description="What happened, for people.")
    doc_id: str = Field(description="The ids, separated by commas.")


router = peer_router("LightRAG", LightRagFailure, prefix="/documents")


@router.post("/text")
async def insert_text(request: Request, body: InsertTextRequest, container: AppContainer) -> InsertAnswer:
    """Add a text. A worker makes it searchable within seconds."""
    insertion = _Insertion(container, choose_workspace(request), end_user_of(request.scope["headers"]))
    await insertion.take(body.text, body.file_source)
    note_documents(request, insertion.documents)
    return insertion.answer()


@router.post("/texts")
async def insert_texts(request: Request, body: InsertTextsRequest, container: AppContainer) -> InsertAnswer:
    """Add texts."""
    names = body.file_sources or [""] * len(body.texts)
    if len(names) != len(body.texts):
        counts = f"{counted(len(body.texts), 'text')} and {counted(len(names), 'name')} in file_sources"
        raise ValidationError(f"There are {counts}. Name each text, or leave file_sources out.")
    insertion = _Insertion(container, choose_workspace(request), end_user_of(request.scope["headers"]))
    for text, name in zip(body.texts, names, strict=True):
        await insertion.take(text, name)
    note_documents(request, insertion.documents)
    return insertion.answer()


@router.get("/track_status/{track_id}")
async def track_status(request: Request, container: AppContainer, track_id: Annotated[str, Path()]) -> TrackStatus:
    """The progress of the texts of a request. An unknown track has no documents."""
    documents: list[TrackedDocument] = []
    summary, total = Counter[DocumentStage](), 0
    for library in await _libraries(container, choose_workspace(request)):
        records, count = await library.documents(track=track_id, limit=_MOST_TRACKED)
        documents += [await _tracked(library, record) for record in records]
        summary.update(_stage(record) for record in records)
        total += count
    return TrackStatus(track_id=track_id, documents=documents, total_count=total, status_summary=dict(summary))


@router.get("/status_counts")
async def status_counts(request: Request, container: AppContainer) -> StatusCounts:
    """The number of documents in each stage."""
    return StatusCounts(status_counts=_stage_counts(await _progress_counts(container, choose_workspace(request))))


@router.get("/pipeline_status")
async def pipeline_status(request: Request, container: AppContainer) -> PipelineStatus:
    """The unfinished work of a workspace."""
    workspace = choose_workspace(request)
    tasks = await container.intake.backlog(workspace)
    progress = await _progress_counts(container, workspace)
    message = f"{counted(tasks.pending, 'task')} waiting, {tasks.processing} under way, {tasks.dead} given up."
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


@router.delete("/delete_document")
async def delete_documents(
    request: Request, container: AppContainer, body: Annotated[DeleteRequest, Body()]
) -> DeleteAnswer:
    """Delete documents, and what only they contributed to the graph."""
    workspace = choose_workspace(request)
    note_documents(request, body.doc_ids)
    missing = [
        identifier
        for identifier in body.doc_ids
        if not await container.intake.delete_either(identifier, workspace=workspace)
    ]
    deleted = len(body.doc_ids) - len(missing)
    message = f"{counted(deleted, 'document')} deleted." + (f" There is no {', '.join(missing)}." if missing else "")
    return DeleteAnswer(status="deletion_started", message=message, doc_id=", ".join(body.doc_ids))


async def _libraries(container: Container, workspace: str) -> list[Library]:
    """The workspace's documents and its memory."""
    return [(await container.workspaces.open(name)).documents for name in (workspace, memory_of(workspace))]


async def _progress_counts(container: Container, workspace: str) -> Counter[str]:
    counts = Counter[str]()
    for library in await _libraries(container, workspace):
        counts.update(asdict(await library.progress()))
    return counts


class _Insertion:
    """The texts of one request, which share a track."""

    def __init__(self, container: Container, workspace: str, end_user: str) -> None:
        self._intake = container.intake
        self._memory = container.memory
        self._workspace = workspace
        self._end_user = end_user
        self._track = _stamped("insert")
        self._acceptances: list[Acceptance] = []

    async def take(self, text: str, name: str | None) -> None:
        """Add a text under a name of its own."""
        named = name if name and name.strip() else f"{_stamped('text')}.txt"
        workspace, track = self._workspace, self._track
        if is_exchange(named, text):
            taken = await self._memory.keep(text, name=named, workspace=workspace, track=track, end_user=self._end_user)
        else:
            taken = await self._intake.written(text, name=named, workspace=workspace, track=track, rename=True)
        self._acceptances.append(taken)

    @property
    def documents(self) -> list[str]:
        """The ids of the added documents."""
        return [acceptance.record.id for acceptance in self._acceptances]

    def answer(self) -> InsertAnswer:
        """The answer. Texts that existed already keep the track of their first insertion."""
        records = [acceptance.record for acceptance in self._acceptances]
        taken = sum(acceptance.outcome != "unchanged" for acceptance in self._acceptances)
        known = "" if taken == len(records) else f" {counted(len(records) - taken, 'text')} known already."
        track = self._track if taken else records[0].track or self._track
        message = f"{counted(taken, 'text')} taken and soon searchable; indexing goes on in the background.{known}"
        return InsertAnswer(status="success", message=message, track_id=track)


def _stamped(kind: str) -> str:
    """A unique name: the kind, the time in UTC, and a random part."""
    return f"{kind}_{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"


def _stage(record: DocumentRecord) -> DocumentStage:
    """The stage of a document. A document is searchable before it is annotated, and processed after that."""
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
        status=_stage(record).lower(),
        created_at=record.created_at,
        updated_at=record.updated_at,
        track_id=record.track or None,
        chunks_count=record.passages,
        error_msg=record.error or None,
        metadata=dict(record.metadata),
        file_path=record.label,
    )


def _stage_counts(progress: Mapping[str, int]) -> dict[DocumentStage, int]:
    return {
        "PENDING": progress["waiting"],
        "PROCESSING": progress["underway"],
        "PROCESSED": progress["done"],
        "FAILED": progress["failed"],
    }
