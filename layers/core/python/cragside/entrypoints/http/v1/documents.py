"""The routes of documents: list, read, move, delete and reprocess them, and follow their progress."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Literal
from unicodedata import category
from weakref import WeakValueDictionary

from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cragside.application.allowance import taking_turns
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound, ServiceUnavailable
from cragside.domain.indexing import (
    DocumentRecord,
    DocumentSort,
    DocumentStatus,
    EnrichmentStatus,
    Listing,
    Passage,
    place_of,
)
from cragside.entrypoints.http.document_answers import DocumentDetail, DocumentPage, document_page, document_record
from cragside.entrypoints.http.errors import Events, error_responses, json_error_responses, with_failure
from cragside.entrypoints.http.health import SharedLook
from cragside.entrypoints.http.models import Shape
from cragside.entrypoints.http.request_access import AppContainer, QueryWorkspace, container_of, end_of, shared
from cragside.entrypoints.http.request_bodies import BoundedRoute

MOST_NAME_CHARACTERS = 1024
# As long as a path can be on Linux.
MOST_SOURCE_CHARACTERS = 4096
MOST_SEARCH_CHARACTERS = 200
MOST_TYPE_CHARACTERS = 40
SOURCE = "What identifies it in its workspace: a path, an address or the client's own id."
_MOST_OFFSET = 1_000_000_000
# Seconds between two looks at the progress.
_LOOKS_EVERY = 0.5
# Streams that one token may have open; without tokens, all clients together.
_MOST_STREAMS = 100
# Seconds that a host with a time limit needs after the last event.
_MARGIN = 1.0


def document_name(name: str) -> str:
    """Return a valid name of a document. Raises `ValueError`."""
    name = name.strip()
    if not name or len(name) > MOST_NAME_CHARACTERS or not name.isprintable():
        raise ValueError(f"A document's name has 1 to {MOST_NAME_CHARACTERS} printable characters: rename it")
    return name


def document_source(source: str) -> str:
    """Return a valid source of a document. Raises `ValueError`."""
    source = source.strip()
    if not source or len(source) > MOST_SOURCE_CHARACTERS or any(category(mark) == "Cc" for mark in source):
        raise ValueError(f"A document's source has 1 to {MOST_SOURCE_CHARACTERS} characters and no control characters")
    return source


DocumentName = Annotated[str, AfterValidator(document_name)]
DocumentSource = Annotated[str, AfterValidator(document_source)]


class DocumentMove(BaseModel):
    """The new source and name of a document."""

    model_config = ConfigDict(extra="forbid")

    source: DocumentSource = Field(description=SOURCE)
    name: DocumentName = Field(description="The name that people see.")


class PassagePlace(Shape):
    """The place of a passage in the text of its document, in Unicode code points. Null where it was not found."""

    id: str = Field(description="Id of the passage.")
    start: int | None = Field(description="Its first character, from 0.")
    end: int | None = Field(description="The character after its last one.")
    page: int | None = Field(description="Its page, where known.")
    section: str | None = Field(description="Its section, where known.")


class DocumentText(BaseModel):
    """The text of a document as it was read."""

    id: str = Field(description="Id of the document.")
    name: str = Field(description="Name of the document.")
    text: str = Field(description="The text as it was extracted.")
    passage: PassagePlace | None = Field(None, description="The passage that was asked for.")


class DocumentProgress(Shape):
    """The progress of a document."""

    id: str = Field(description="Id of the document.")
    status: DocumentStatus = Field(description="Status of the document.")
    enrichment: EnrichmentStatus | Literal["mixed"] = Field(
        description="Progress of the annotation; `mixed` if parts differ."
    )
    parts: int = Field(description="Number of parts.")
    embedded_parts: int = Field(description="Number of searchable parts.")
    enriched_parts: int = Field(description="Number of annotated parts.")
    failed_parts: int = Field(description="Number of failed parts.")
    passages: int = Field(description="Number of passages.")
    error: str = Field(description="Why it failed; empty if it did not.")


class Restarted(BaseModel):
    """The number of tasks that were queued."""

    tasks: int = Field(description="Number of tasks that were queued.")


class ProgressStreams:
    """Counts the open streams of a service. Streams of one document share each look at it."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.clock = container.clock
        self._open: Counter[str] = Counter()
        self._looks: WeakValueDictionary[tuple[str, str], SharedLook[DocumentRecord | None]] = WeakValueDictionary()

    @contextmanager
    def opened(self, token: str) -> Iterator[None]:
        """Count a stream during the block. Raises `ServiceUnavailable` if the token has too many."""
        if self._open[token] >= _MOST_STREAMS:
            raise ServiceUnavailable(
                "streams", f"{_MOST_STREAMS} streams are open. Close some, or list documents with ?status=pending."
            )
        self._open[token] += 1
        try:
            yield
        finally:
            self._open[token] -= 1
            if not self._open[token]:
                del self._open[token]

    def look(self, workspace: str, document_id: str) -> SharedLook[DocumentRecord | None]:
        """Return a function that shows a document as it was at most half a second ago."""
        ask = partial(document_record, self._container, workspace, document_id)
        return self._looks.setdefault((workspace, document_id), SharedLook(ask, self.clock, _LOOKS_EVERY))


async def progress_events(
    streams: ProgressStreams, workspace: str, record: DocumentRecord, *, ends: float | None
) -> Events:
    """`progress` at each change, then `done` or `failed`, or `later` if the host's time `ends` before that."""
    look = streams.look(workspace, record.id)
    sent: BaseModel | None = None
    current: DocumentRecord | None = record
    while current is not None:
        progress = progress_of(current)
        if progress != sent:
            yield ServerSentEvent(event="progress", data=progress)
            sent = progress
        if (end := _end_of(current)) is not None:
            yield ServerSentEvent(event=end, data=progress)
            return
        if ends is not None and streams.clock.monotonic() + _LOOKS_EVERY + _MARGIN > ends:
            yield ServerSentEvent(event="later", data=progress, retry=1000)
            return
        await streams.clock.sleep(_LOOKS_EVERY)
        current = await look.result()
    raise unknown_document(record.id)


def _end_of(record: DocumentRecord) -> str | None:
    if record.status == "failed":
        return "failed"
    unfinished = record.status == "pending" or record.enrichment in ("pending", "processing", "mixed")
    return None if unfinished else "done"


def unknown_document(document_id: str) -> NotFound:
    """Return the error for an unknown id."""
    return NotFound(f"There is no document {document_id} in this workspace.")


def progress_of(record: DocumentRecord) -> DocumentProgress:
    """Return the progress of a document."""
    return DocumentProgress(
        id=record.id,
        status=record.status,
        enrichment=record.enrichment,
        parts=len(record.parts),
        embedded_parts=sum(part.embedded for part in record.parts),
        enriched_parts=sum(part.enrichment == "enriched" for part in record.parts),
        failed_parts=sum(part.enrichment == "failed" or bool(part.error) for part in record.parts),
        passages=record.passages,
        error=record.error,
    )


async def place_in_document(
    passages: Sequence[Passage], document_id: str, source: SourceText, passage_id: str
) -> PassagePlace:
    """Return the place of a passage among those of its document. Raises `NotFound` if it is none of them."""
    passage = next((each for each in passages if each.id == passage_id), None)
    if passage is None:
        raise NotFound(f"Document {document_id} has no passage {passage_id}.")
    # In a thread: a text of 50 MB takes a while to search.
    found = await asyncio.to_thread(place_of, passage, passages, source)
    start, end = found or (None, None)
    return PassagePlace(id=passage.id, start=start, end=end, page=passage.page, section=passage.section or None)


async def _found(document_id: str, container: AppContainer, workspace: QueryWorkspace) -> DocumentRecord:
    record = await document_record(container, workspace, document_id)
    if record is None:
        raise unknown_document(document_id)
    return record


FoundDocument = Annotated[DocumentRecord, Depends(_found)]

router = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=BoundedRoute, responses=error_responses())


async def _listing(
    search: Annotated[
        str,
        Query(max_length=MOST_SEARCH_CHARACTERS, description="Part of the name, the title or the source, in any case."),
    ] = "",
    file_type: Annotated[
        str | None,
        Query(min_length=1, max_length=MOST_TYPE_CHARACTERS, description="Only files of this type, such as `pdf`."),
    ] = None,
    unread: Annotated[bool, Query(description="Only documents of whose files something was not read.")] = False,
    sort: Annotated[
        DocumentSort | None,
        Query(description="What the list is sorted by. Default: `added`, or with `below` the source."),
    ] = None,
    order: Annotated[
        Literal["asc", "desc"] | None,
        Query(description="Default: `desc` for `added` and `changed`, else `asc`."),
    ] = None,
) -> tuple[Listing, bool]:
    """Return the list that a request asks for, and whether the request says how it is sorted."""
    descending = None if order is None else order == "desc"
    return Listing(search.strip(), file_type, unread, sort or "added", descending), (sort or order) is not None


@router.get("")
async def list_documents(
    container: AppContainer,
    workspace: QueryWorkspace,
    asked: Annotated[tuple[Listing, bool], Depends(_listing)],
    limit: Annotated[int, Query(ge=1, le=1000, description="The most documents of a page.")] = 100,
    offset: Annotated[int, Query(ge=0, le=_MOST_OFFSET, description="How many documents to skip.")] = 0,
    status: Annotated[DocumentStatus | None, Query(description="Only documents of this status.")] = None,
    below: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MOST_SOURCE_CHARACTERS,
            description="Only those whose source is below this path, in the order of their sources.",
        ),
    ] = None,
) -> DocumentPage:
    """The documents of a workspace without their content, latest first unless another order is asked for."""
    listing, sorts = asked
    return await document_page(
        container, workspace, listing, sorts=sorts, limit=limit, offset=offset, status=status, below=below
    )


@router.get("/{document_id}", response_model=DocumentDetail)
async def get_document(record: FoundDocument) -> DocumentRecord:
    """A document with its parts, without its content."""
    return record


@router.get("/{document_id}/content")
async def get_document_text(
    document_id: str,
    container: AppContainer,
    workspace: QueryWorkspace,
    passage: Annotated[str | None, Query(description="Id of a passage, to be told where it stands.")] = None,
) -> DocumentText:
    """The text of a document, and where one of its passages stands in it."""
    library = (await container.workspaces.open(workspace)).documents
    source = await library.source(document_id)
    if source is None:
        raise unknown_document(document_id)
    place = None
    if passage is not None:
        place = await place_in_document(await library.passages(document_id), document_id, source, passage)
    return DocumentText(id=document_id, name=source.name, text=source.text, passage=place)


@router.patch("/{document_id}", response_model=DocumentDetail)
async def move_document(
    document_id: str, asked: DocumentMove, container: AppContainer, workspace: QueryWorkspace
) -> DocumentRecord:
    """Change the source and the name of a document, for example after its file has moved. Nothing is indexed again."""
    return await container.intake.move(document_id, source=asked.source, name=asked.name, workspace=workspace)


@router.delete("/{document_id}", status_code=204)
async def delete_document(
    document_id: str,
    container: AppContainer,
    workspace: QueryWorkspace,
    content_hash: Annotated[str | None, Query(description="Delete it only if its text still has this hash.")] = None,
) -> None:
    """Delete a document, its passages and its tasks, and what only it contributed to the graph."""
    if not await container.intake.delete(document_id, workspace=workspace, content_hash=content_hash):
        raise unknown_document(document_id)


@router.post("/{document_id}/reprocess", status_code=202)
async def reprocess_document(
    record: FoundDocument,
    container: AppContainer,
    workspace: QueryWorkspace,
    force: Annotated[bool, Query(description="Also work that is done.")] = False,
) -> Restarted:
    """Queue failed and unfinished work, or all of it."""
    return Restarted(tasks=await container.intake.restart(record.id, workspace=workspace, force=force))


async def _streams(request: Request, workspace: QueryWorkspace) -> AsyncIterator[ProgressStreams]:
    """Count the stream of this request as open, and yield the open streams."""
    streams = shared(request.app, ProgressStreams, container_of(request))
    with streams.opened(taking_turns(workspace)):
        yield streams


OpenStreams = Annotated[ProgressStreams, Depends(_streams)]


@router.get("/{document_id}/events", response_class=EventSourceResponse, responses=json_error_responses())
async def follow_document(
    request: Request, record: FoundDocument, streams: OpenStreams, workspace: QueryWorkspace
) -> AsyncIterator[ServerSentEvent]:
    """The progress of a document as server-sent events: `progress` at each change, then `done` or `failed`.

    If the host limits the time of a request, the last event may be `later`. EventSource then asks again.
    """
    events = progress_events(streams, workspace, record, ends=end_of(request))
    async for event in with_failure(request, events):
        yield event
