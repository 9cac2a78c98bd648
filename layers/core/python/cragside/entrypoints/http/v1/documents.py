"""The routes of documents: add, list, read, move, delete and reprocess them, and follow their progress."""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from cragside.application.allowance import taking_turns
from cragside.domain.indexing import DocumentRecord, DocumentSort, DocumentStatus, Listing
from cragside.entrypoints.http.body_limit import json_body, media_type
from cragside.entrypoints.http.errors import error_responses, json_error_responses
from cragside.entrypoints.http.request_access import WORKSPACE, AppContainer, QueryWorkspace, note_documents
from cragside.entrypoints.http.v1.document_events import (
    ProgressStreams,
    document_record,
    progress_events,
    unknown_document,
)
from cragside.entrypoints.http.v1.document_models import (
    MOST_SEARCH_CHARACTERS,
    MOST_SOURCE_CHARACTERS,
    MOST_TYPE_CHARACTERS,
    AcceptedDocuments,
    DocumentDetail,
    DocumentForm,
    DocumentMove,
    DocumentPage,
    DocumentRequest,
    DocumentText,
    Restarted,
    body_of,
    detail_of,
)
from cragside.entrypoints.http.v1.document_passages import place_in_document
from cragside.entrypoints.http.v1.request_intake import RequestIntake, parsed

_MOST_OFFSET = 1_000_000_000
_BODIES = {
    "multipart/form-data": {"schema": DocumentForm.model_json_schema()},
    "application/json": {"schema": DocumentRequest.model_json_schema()},
}
# In the query, the workspace is known before the fields of a form.
_WORKSPACE = {"name": "workspace", "in": "query", "schema": {"type": "string"}, "description": WORKSPACE}
_MOVE = {
    "requestBody": {"content": {"application/json": {"schema": DocumentMove.model_json_schema()}}, "required": True}
}


async def _found(document_id: str, container: AppContainer, workspace: QueryWorkspace) -> DocumentRecord:
    record = await document_record(container, workspace, document_id)
    if record is None:
        raise unknown_document(document_id)
    return record


FoundDocument = Annotated[DocumentRecord, Depends(_found)]

router = APIRouter(prefix="/v1/documents", tags=["documents"], responses=error_responses())


@router.post(
    "",
    status_code=202,
    openapi_extra={"requestBody": {"content": _BODIES, "required": True}, "parameters": [_WORKSPACE]},
)
async def add_documents(request: Request) -> AcceptedDocuments:
    """Add documents: files of a form, or one text, URL or upload as JSON. They are indexed afterwards.

    Refused documents do not affect the others. If all are refused, the answer is the first error.
    """
    intake = RequestIntake(request)
    if media_type(request) == "multipart/form-data":
        await intake.form()
    else:
        await intake.json()
    answer = intake.answer()
    note_documents(request, (document.id for document in answer.documents))
    return answer


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
    """The list that a request asks for, and whether the request says how it is sorted."""
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
    library = (await container.workspaces.open(workspace)).documents
    listing, sorts = asked
    if below is None:
        records, total = await library.documents(limit=limit, offset=offset, status=status, listing=listing)
    else:
        inside = [each for each in await library.below(below) if status in (None, each.status) and listing.takes(each)]
        records, total = (listing.ordered(inside) if sorts else inside)[offset : offset + limit], len(inside)
    return DocumentPage(
        documents=[body_of(record) for record in records],
        total=total,
        limit=limit,
        offset=offset,
        file_types=await library.file_types(),
    )


@router.get("/{document_id}")
async def get_document(record: FoundDocument) -> DocumentDetail:
    """A document with its parts, without its content."""
    return detail_of(record)


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
    place = None if passage is None else await place_in_document(library, document_id, source, passage)
    return DocumentText(id=document_id, name=source.name, text=source.text, passage=place)


@router.patch("/{document_id}", openapi_extra=_MOVE)
async def move_document(
    request: Request, document_id: str, container: AppContainer, workspace: QueryWorkspace
) -> DocumentDetail:
    """Change the source and the name of a document, for example after its file has moved. Nothing is indexed again."""
    asked = parsed(DocumentMove, await json_body(request))
    moved = await container.intake.move(document_id, source=asked.source, name=asked.name, workspace=workspace)
    return detail_of(moved)


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
    """The open streams, among them that of this request until it ends."""
    streams: ProgressStreams = request.app.state.progress_streams
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
    async for event in progress_events(streams, workspace, record, ends=getattr(request.state, "ends", None)):
        yield event
