"""LightRAG's routes: add texts and follow their progress, and passages with the graph around them.

LightRAG's bots store conversations by these routes. A text with the name or the form of an exchange goes into memory.
Any other text is a document. These routes report both.
"""

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from cragside.application.passages import Hit, Lookup
from cragside.bootstrap import Container
from cragside.domain.errors import ValidationError
from cragside.domain.exchange import is_exchange
from cragside.domain.faults import counted
from cragside.domain.indexing import Acceptance, DocumentRecord, Passage
from cragside.domain.knowledge import Neighbourhood, Relationship
from cragside.domain.names import memory_of
from cragside.entrypoints.http.errors import LightRagFailure, QueryDataFailure, failure_responses, peer_router
from cragside.entrypoints.http.passage_search import PassageSearch
from cragside.entrypoints.http.peers.query import DEFAULT_PASSAGES, LookupBody, Reference, references_of
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, end_of, note_documents
from cragside.entrypoints.request_headers import end_user_of

DocumentStage = Literal["PENDING", "PROCESSING", "PROCESSED", "FAILED"]

_SUMMARY_CHARACTERS = 100
# Most documents of one track in an answer.
_MOST_TRACKED = 1000

# The names of the stages in `Progress`.
_STAGES: dict[DocumentStage, str] = {
    "PENDING": "waiting",
    "PROCESSING": "underway",
    "PROCESSED": "done",
    "FAILED": "failed",
}

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]

router = peer_router("LightRAG", LightRagFailure)
# LightRAG's separator in lists of ids and paths.
_SEPARATOR = "<SEP>"


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


@router.post("/documents/text")
async def insert_text(request: Request, body: InsertTextRequest, container: AppContainer) -> InsertAnswer:
    """Add a text. The message says if it is searchable, or soon will be."""
    return await _insert(request, container, [(body.text, body.file_source)])


@router.post("/documents/texts")
async def insert_texts(request: Request, body: InsertTextsRequest, container: AppContainer) -> InsertAnswer:
    """Add texts."""
    names = body.file_sources or [""] * len(body.texts)
    if len(names) != len(body.texts):
        counts = f"{counted(len(body.texts), 'text')} and {counted(len(names), 'name')} in file_sources"
        raise ValidationError(f"There are {counts}. Name each text, or leave file_sources out.")
    return await _insert(request, container, zip(body.texts, names, strict=True))


@router.get("/documents/track_status/{track_id}")
async def track_status(request: Request, container: AppContainer, track_id: Annotated[str, Path()]) -> TrackStatus:
    """The progress of the texts of a request. An unknown track has no documents."""
    documents: list[TrackedDocument] = []
    summary, total = Counter[DocumentStage](), 0
    workspace = choose_workspace(request)
    for name in (workspace, memory_of(workspace)):
        library = (await container.workspaces.open(name)).documents
        records, count = await library.documents(track=track_id, limit=_MOST_TRACKED)
        documents += [_tracked(record, await library.passages(record.id, 0)) for record in records]
        summary.update(_stage(record) for record in records)
        total += count
    return TrackStatus(track_id=track_id, documents=documents, total_count=total, status_summary=dict(summary))


@router.get("/documents/status_counts")
async def status_counts(request: Request, container: AppContainer) -> StatusCounts:
    """The number of documents in each stage."""
    progress = await _progress_counts(container, choose_workspace(request))
    return StatusCounts(status_counts={stage: progress[name] for stage, name in _STAGES.items()})


@router.get("/documents/pipeline_status")
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


@router.delete("/documents/delete_document")
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


async def _progress_counts(container: Container, workspace: str) -> Counter[str]:
    counts = Counter[str]()
    for name in (workspace, memory_of(workspace)):
        progress = await (await container.workspaces.open(name)).documents.progress()
        counts.update(asdict(progress))
    return counts


async def _insert(request: Request, container: Container, texts: Iterable[tuple[str, str | None]]) -> InsertAnswer:
    """Add texts, which share a track. Texts that existed already keep the track of their first insertion."""
    workspace, end_user = choose_workspace(request), end_user_of(request.scope["headers"])
    track = _stamped("insert")
    acceptances: list[Acceptance] = []
    for text, given in texts:
        name = given if given and given.strip() else f"{_stamped('text')}.txt"
        if is_exchange(name, text):
            kept = container.memory.keep(text, name=name, workspace=workspace, track=track, end_user=end_user)
        else:
            kept = container.intake.written(text, name=name, workspace=workspace, track=track, rename=True)
        acceptances.append(await kept)
    note_documents(request, (each.record.id for each in acceptances))
    taken = sum(each.outcome != "unchanged" for each in acceptances)
    known = len(acceptances) - taken
    soon = "" if all(each.record.searchable for each in acceptances) else "soon "
    message = f"{counted(taken, 'text')} taken and {soon}searchable; indexing goes on in the background."
    return InsertAnswer(
        status="success",
        message=message + (f" {counted(known, 'text')} known already." if known else ""),
        track_id=track if taken else acceptances[0].record.track or track,
    )


def _stamped(kind: str) -> str:
    """Return a unique name: the kind, the time in UTC, and a random part."""
    return f"{kind}_{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(4)}"


def _stage(record: DocumentRecord) -> DocumentStage:
    """Return the stage of a document. A document is searchable before it is annotated, and processed after that."""
    match record.status:
        case "failed":
            return "FAILED"
        case "pending":
            return "PROCESSING" if any(part.embedded for part in record.parts) else "PENDING"
        case "searchable" if record.enrichment != "none":
            return "PROCESSING"
        case _:
            return "PROCESSED"


def _tracked(record: DocumentRecord, passages: Sequence[Passage]) -> TrackedDocument:
    """Describe a document, given its first passages."""
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


class DataEntity(BaseModel):
    """An entity that the passages mention. `source_id` has the ids of these passages."""

    entity_name: str = Field(description="Name of the entity.")
    entity_type: str = Field(description="Its type.")
    description: str = Field(description="What the documents say about it.")
    source_id: str = Field(description="Ids of the passages that mention it.")
    file_path: str = Field(description="Names of the documents that mention it.")
    created_at: str = Field(description="When it was found first.")
    reference_id: str = Field(description="Number of the reference that mentions it.")


class DataRelationship(BaseModel):
    """A relationship between two of the entities. `weight` is the number of passages that mention both."""

    src_id: str = Field(description="Name of the first entity.")
    tgt_id: str = Field(description="Name of the second entity.")
    description: str = Field(description="What the documents say about it.")
    keywords: str = Field(description="Words that describe it.")
    weight: float = Field(description="Its strength.")
    source_id: str = Field(description="Ids of the passages that mention it.")
    file_path: str = Field(description="Names of the documents that mention it.")
    created_at: str = Field(description="When it was found first.")
    reference_id: str = Field(description="Number of the reference that mentions it.")


class DataChunk(BaseModel):
    """A passage."""

    reference_id: str = Field(description="Number of its reference.")
    content: str = Field(description="The text of the passage.")
    file_path: str = Field(description="Name of its document.")
    chunk_id: str = Field(description="Id of the passage.")


class QueryData(BaseModel):
    """The passages, and the graph around them."""

    entities: list[DataEntity] = Field(description="Entities in the passages or near them.")
    relationships: list[DataRelationship] = Field(description="Relationships between the entities.")
    chunks: list[DataChunk] = Field(description="The passages.")
    references: list[Reference] = Field(description="The passages' documents, numbered.")


class QueryDataAnswer(BaseModel):
    """The data from which LightRAG would generate an answer. `failure`: nothing was found."""

    status: Literal["success", "failure"] = Field(description="`failure` if nothing was found.")
    message: str = Field(description="What happened, for people.")
    data: QueryData = Field(description="What was found.")
    metadata: dict[str, Any] = Field(description="The mode, the keywords and the numbers of results.")


@router.post("/query/data", responses=failure_responses(QueryDataFailure))
async def query_data(request: Request, body: LookupBody, container: AppContainer) -> QueryDataAnswer:
    """The data from which LightRAG would generate an answer: passages, and the entities and relationships in them."""
    search = PassageSearch(container, choose_workspace(request), end_of(request))
    return await search.within(_data(search, body))


async def _data(search: PassageSearch, body: LookupBody) -> QueryDataAnswer:
    mode = body.mode or "mix"
    hits = (await search.find(Lookup(body.question, body.limit or DEFAULT_PASSAGES, mode=mode))).hits
    if not hits:
        return _nothing(mode)
    mentions: dict[str, list[Hit]] = {}
    around = Neighbourhood()
    if mode != "naive":
        mentions, around = await search.passages.within(hits, workspace=search.workspace)
    numbers = {hit.passage.id: str(number) for number, hit in enumerate(hits, 1)}
    data = QueryData(
        entities=_entities(around, mentions, numbers),
        relationships=[_relationship(each, mentions, numbers) for each in around.relationships],
        chunks=[_chunk(hit, numbers) for hit in hits],
        references=references_of(hits),
    )
    sizes = {
        "total_entities_found": len(mentions),
        "total_relations_found": len(data.relationships),
        "entities_after_truncation": len(data.entities),
        "relations_after_truncation": len(data.relationships),
        "final_chunks_count": len(hits),
    }
    keywords = {"high_level": body.hl_keywords, "low_level": body.ll_keywords}
    metadata = {"query_mode": mode, "keywords": keywords, "processing_info": sizes}
    return QueryDataAnswer(status="success", message="Passages were found.", data=data, metadata=metadata)


def _nothing(mode: str) -> QueryDataAnswer:
    empty = QueryData(entities=[], relationships=[], chunks=[], references=[])
    metadata = {"failure_reason": "no_results", "mode": mode}
    return QueryDataAnswer(status="failure", message="No passages were found.", data=empty, metadata=metadata)


def _entities(
    around: Neighbourhood, mentions: Mapping[str, Sequence[Hit]], numbers: Mapping[str, str]
) -> list[DataEntity]:
    return [
        DataEntity(
            entity_name=entity.name,
            entity_type=entity.type,
            description=entity.description,
            created_at=entity.last_seen or "",
            **_provenance(mentions[entity.name], numbers),
        )
        for entity in around.entities
        if entity.name in mentions
    ]


def _relationship(
    relationship: Relationship, mentions: Mapping[str, Sequence[Hit]], numbers: Mapping[str, str]
) -> DataRelationship:
    others = {hit.passage.id for hit in mentions.get(relationship.target, ())}
    both = [hit for hit in mentions.get(relationship.source, ()) if hit.passage.id in others]
    return DataRelationship(
        src_id=relationship.source,
        tgt_id=relationship.target,
        description=relationship.description,
        keywords=relationship.type,
        weight=float(len(both)),
        created_at="",
        **_provenance(both, numbers),
    )


def _provenance(hits: Sequence[Hit], numbers: Mapping[str, str]) -> dict[str, str]:
    return {
        "source_id": _SEPARATOR.join(hit.passage.id for hit in hits),
        "file_path": _SEPARATOR.join(dict.fromkeys(hit.record.label for hit in hits)),
        "reference_id": numbers[hits[0].passage.id] if hits else "",
    }


def _chunk(hit: Hit, numbers: Mapping[str, str]) -> DataChunk:
    return DataChunk(
        reference_id=numbers[hit.passage.id],
        content=hit.passage.text,
        file_path=hit.record.label,
        chunk_id=hit.passage.id,
    )
