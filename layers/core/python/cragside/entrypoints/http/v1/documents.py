"""Documents in, and what became of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, TypeVar, cast, get_args

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from pydantic import ValidationError as PydanticValidationError

from cragside.application.contract import error_envelope
from cragside.bootstrap import Container
from cragside.domain.document import DocType
from cragside.domain.errors import CragsideError, NotFound, PayloadTooLarge, ValidationError
from cragside.domain.indexing import Acceptance, DocumentRecord, DocumentStatus
from cragside.entrypoints.http.body_limit import json_body, media_type
from cragside.entrypoints.http.errors import complaint_of, failures, for_client
from cragside.entrypoints.http.multipart import FormPart, Room, form_parts
from cragside.entrypoints.http.tenancy import Access
from cragside.entrypoints.http.v1.document_models import (
    MOST_SOURCE_CHARACTERS,
    AcceptedDocuments,
    DocumentDetail,
    DocumentForm,
    DocumentMove,
    DocumentPage,
    DocumentRequest,
    DocumentText,
    RefusedDocument,
    Restarted,
    accepted_of,
    body_of,
    detail_of,
    document_name,
    document_source,
    progress_of,
)

_MOST_PARTS = 100
# So many of the largest files may be in memory at a time, of all requests together.
_LARGEST_FILES = 4
_MOST_OFFSET = 1_000_000_000
# How often the progress of a document is looked up, in seconds.
_LOOKS_EVERY = 0.5
# What a host that limits a request's time needs after the last event, in seconds.
_MARGIN = 1.0
_MOVE = {
    "requestBody": {"content": {"application/json": {"schema": DocumentMove.model_json_schema()}}, "required": True}
}

Shape = TypeVar("Shape", bound=BaseModel)


def router(container: Container, access: Access) -> APIRouter:
    """`/v1/documents` and all below it."""
    routes = APIRouter(prefix="/v1/documents", tags=["documents"])
    workspace_asked = Annotated[str, Depends(access.asked)]
    room = Room(_LARGEST_FILES * container.settings.max_file_bytes)

    async def found(document_id: str, workspace: workspace_asked) -> DocumentRecord:
        record = await _record(container, workspace, document_id)
        if record is None:
            raise _unknown(document_id)
        return record

    @routes.post(
        "",
        status_code=202,
        responses=failures(),
        openapi_extra={"requestBody": {"content": _contents(), "required": True}},
    )
    async def add(request: Request) -> AcceptedDocuments:
        """Take documents in: files of a form, or one text, URL or upload as JSON. They are indexed afterwards.

        Some may be refused while others are taken; when none is taken, the first refusal is the answer.
        """
        taking = _Taking(container, access, request, room)
        if media_type(request) == "multipart/form-data":
            await taking.form()
        else:
            await taking.one()
        answer = taking.answer()
        access.note(request, (document.id for document in answer.documents))
        return answer

    @routes.get("", responses=failures())
    async def listed(
        workspace: workspace_asked,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        offset: Annotated[int, Query(ge=0, le=_MOST_OFFSET)] = 0,
        status: DocumentStatus | None = None,
        below: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=MOST_SOURCE_CHARACTERS,
                description="Only those whose source lies below this path, in the order of their sources.",
            ),
        ] = None,
        unclaimed: Annotated[
            bool, Query(description="Only those of earlier versions that have no source, in the order of their names.")
        ] = False,
    ) -> DocumentPage:
        """The documents of a workspace without their content, latest first."""
        library = (await container.workspaces.open(workspace)).documents
        if below is not None or unclaimed:
            chosen = await library.unclaimed() if below is None else await library.below(below)
            inside = [record for record in chosen if status in (None, record.status)]
            bodies = [body_of(record) for record in inside[offset : offset + limit]]
            return DocumentPage(documents=bodies, total=len(inside), limit=limit, offset=offset)
        records, total = await library.documents(limit=limit, offset=offset, status=status)
        return DocumentPage(documents=[body_of(record) for record in records], total=total, limit=limit, offset=offset)

    @routes.get("/{document_id}", responses=failures())
    async def shown(record: Annotated[DocumentRecord, Depends(found)]) -> DocumentDetail:
        """A document with its parts, without its content."""
        return detail_of(record)

    @routes.get("/{document_id}/content", responses=failures())
    async def content(document_id: str, workspace: workspace_asked) -> DocumentText:
        """The text of a document."""
        source = await (await container.workspaces.open(workspace)).documents.source(document_id)
        if source is None:
            raise _unknown(document_id)
        return DocumentText(id=document_id, name=source.name, text=source.text)

    @routes.patch("/{document_id}", responses=failures(), openapi_extra=_MOVE)
    async def moved(request: Request, document_id: str, workspace: workspace_asked) -> DocumentDetail:
        """Give a document another source and another name, as when its file was moved. Nothing is indexed again."""
        asked = _parsed(DocumentMove, await json_body(request, container.settings.max_body_bytes))
        library = (await container.workspaces.open(workspace)).documents
        return detail_of(await library.move(document_id, source=asked.source, name=asked.name))

    @routes.delete("/{document_id}", status_code=204, responses=failures())
    async def forget(document_id: str, workspace: workspace_asked) -> None:
        """Forget a document, its passages and its tasks; what only it contributed to the graph follows."""
        if not await container.intake.delete(document_id, workspace=workspace):
            raise _unknown(document_id)

    @routes.post("/{document_id}/reprocess", status_code=202, responses=failures())
    async def reprocess(
        record: Annotated[DocumentRecord, Depends(found)],
        workspace: workspace_asked,
        force: Annotated[bool, Query(description="Also what is done already.")] = False,
    ) -> Restarted:
        """Queue what failed or is not done yet, or everything."""
        return Restarted(tasks=await container.intake.restart(record.id, workspace=workspace, force=force))

    @routes.get("/{document_id}/events", response_class=EventSourceResponse, responses=_json_failures())
    async def events(
        request: Request, record: Annotated[DocumentRecord, Depends(found)], workspace: workspace_asked
    ) -> AsyncIterator[ServerSentEvent]:
        """The progress of a document as server-sent events: `progress` at each change, then `done` or `failed`.

        Where the host limits a request's time the last event is `later`, and EventSource asks again.
        """
        async for event in _progress(container, workspace, record, ends=getattr(request.state, "ends", None)):
            yield event

    return routes


class _Taking:
    """Takes the documents of one request in."""

    def __init__(self, container: Container, access: Access, request: Request, room: Room) -> None:
        self._container = container
        self._access = access
        self._request = request
        self._room = room
        self._accepted: list[Acceptance] = []
        self._refused: list[tuple[str, CragsideError]] = []

    async def one(self) -> None:
        """The document of a JSON body."""
        body = await json_body(self._request, self._container.settings.max_body_bytes)
        asked = _parsed(DocumentRequest, body)
        workspace = self._access.workspace(self._request, asked.workspace)
        intake = self._container.intake
        if asked.url is not None:
            taken = await intake.page(
                asked.url,
                workspace=workspace,
                source=asked.source or "",
                name=asked.name,
                doc_type=asked.doc_type,
                metadata=asked.metadata,
                enrich=asked.enrich,
            )
        elif asked.upload is not None:
            taken = await self._upload(asked.upload, asked, workspace)
        else:
            taken = await intake.written(
                asked.text or "",
                name=asked.name or "",
                source=asked.source or "",
                title=asked.title or "",
                workspace=workspace,
                doc_type=asked.doc_type,
                metadata=asked.metadata,
                enrich=asked.enrich,
            )
        self._accepted.append(taken)

    async def _upload(self, identifier: str, asked: DocumentRequest, workspace: str) -> Acceptance:
        # How large it is shows when it is there.
        held = self._container.settings.max_file_bytes
        self._room.take(held)
        try:
            async with self._container.uploads.opened(identifier, workspace=workspace) as content:
                self._room.give_back(held - len(content))
                held = len(content)
                return await self._container.intake.file(
                    content,
                    name=asked.name or "",
                    source=asked.source or "",
                    workspace=workspace,
                    doc_type=asked.doc_type,
                    metadata=asked.metadata,
                    enrich=asked.enrich,
                )
        finally:
            self._room.give_back(held)

    async def form(self) -> None:
        """The files of a form, each as soon as it is complete. What is wrong later on does not undo that."""
        try:
            await self._files()
        except CragsideError as error:
            if not self._accepted:
                raise
            self._refused.append(("", for_client(error)))

    async def _files(self) -> None:
        limit = self._container.settings.max_file_bytes
        fields: dict[str, str] = {}
        names: list[str] = []
        parts = form_parts(self._request, file_limit=limit, most_parts=_MOST_PARTS, room=self._room)
        async with aclosing(parts):
            async for part in parts:
                if part.filename is None:
                    if names:
                        raise ValidationError(
                            f"The field {part.name} comes after a file. Send fields first: the files before it are "
                            "taken.",
                            field=part.name,
                        )
                    fields[part.name] = part.text
                elif part.filename or part.size:  # a browser sends an empty part for a file that was not chosen
                    await self._file(part, fields, names)
                    names.append(part.filename)
        if not names:
            raise ValidationError("The form has no file.", field="files")

    async def _file(self, part: FormPart, fields: dict[str, str], before: Sequence[str]) -> None:
        # Outside of `try`: what is wrong with the fields is wrong with the whole request.
        workspace = self._access.workspace(self._request, fields.get("workspace"))
        enrich, metadata = _flag(fields.get("enrich", "true")), _metadata(fields.get("metadata"))
        doc_type = _doc_type(fields.get("doc_type"))
        source = _source(fields.get("source") or fields.get("id"))
        if source and before:
            raise ValidationError(
                "source identifies one document: send each file with a source in a form of its own.", field="source"
            )
        name = part.filename or ""
        try:
            if part.too_large:
                raise PayloadTooLarge(
                    f"{name} has {part.size} bytes; the limit is {part.limit} (RAG_MAX_FILE_BYTES).", limit=part.limit
                )
            if name in before:
                raise ValidationError(
                    f"The form has another file {name}, which this one would replace. Send each in a form of its own "
                    "with a source.",
                    field="filename",
                )
            taken = await self._container.intake.file(
                bytes(part.content),
                name=_file_name(name),
                source=source,
                workspace=workspace,
                content_type=part.content_type,
                doc_type=doc_type,
                metadata=metadata,
                enrich=enrich,
            )
        except CragsideError as error:
            self._refused.append((name, for_client(error)))
        else:
            self._accepted.append(taken)

    def answer(self) -> AcceptedDocuments:
        """What became of them. Raises the first refusal when none was taken."""
        refused = [
            RefusedDocument(name=name, type=error.code, message=error.message, details=dict(error.details))
            for name, error in self._refused
        ]
        if not self._accepted and self._refused:
            first = self._refused[0][1]
            if len(refused) > 1:
                first.details = {**first.details, "errors": [each.model_dump() for each in refused]}
            raise first
        return AcceptedDocuments(documents=[accepted_of(taken) for taken in self._accepted], errors=refused)


async def _record(container: Container, workspace: str, document_id: str) -> DocumentRecord | None:
    """A document, looked up by a task that ends: the workspace is not in use while a stream waits for progress."""
    library = (await container.workspaces.open(workspace)).documents
    return await asyncio.create_task(library.document(document_id))


async def _progress(
    container: Container, workspace: str, record: DocumentRecord, *, ends: float | None
) -> AsyncIterator[ServerSentEvent]:
    told: BaseModel | None = None
    current: DocumentRecord | None = record
    while current is not None:
        progress = progress_of(current)
        if progress != told:
            yield ServerSentEvent(event="progress", data=progress)
            told = progress
        if (end := _end_of(current)) is not None:
            yield ServerSentEvent(event=end, data=progress)
            return
        if ends is not None and time.monotonic() + _LOOKS_EVERY + _MARGIN > ends:
            yield ServerSentEvent(event="later", data=progress, retry=1000)
            return
        await asyncio.sleep(_LOOKS_EVERY)
        try:
            current = await _record(container, workspace, record.id)
        except CragsideError as error:
            yield ServerSentEvent(event="failed", data=error_envelope(for_client(error)))
            return
    yield ServerSentEvent(event="failed", data=error_envelope(_unknown(record.id)))


def _end_of(record: DocumentRecord) -> str | None:
    if record.status == "failed":
        return "failed"
    unfinished = record.status == "pending" or record.enrichment in ("pending", "processing", "mixed")
    return None if unfinished else "done"


def _json_failures() -> dict[int | str, dict[str, Any]]:
    """The failures of a route that answers with another type; FastAPI would give them that type as well."""
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {status: {"description": said["description"], "content": content} for status, said in failures().items()}


def _contents() -> dict[str, Any]:
    return {
        "multipart/form-data": {"schema": DocumentForm.model_json_schema()},
        "application/json": {"schema": DocumentRequest.model_json_schema()},
    }


def _parsed(shape: type[Shape], body: bytes) -> Shape:
    try:
        return shape.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise ValidationError("The body is not valid JSON.") from error
    except PydanticValidationError as error:
        complaints = error.errors(include_input=False, include_url=False, include_context=False)
        raise ValidationError("; ".join(complaint_of(dict(each)) for each in complaints[:3]) + ".") from error


def _file_name(name: str) -> str:
    try:
        return document_name(name)
    except ValueError as error:
        raise ValidationError(f"{error}.", field="filename") from error


def _source(source: str | None) -> str:
    try:
        return document_source(source) if source else ""
    except ValueError as error:
        raise ValidationError(f"{error}.", field="source") from error


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise ValidationError("enrich is true or false.", field="enrich")
    return value.lower() in ("true", "1")


def _doc_type(value: str | None) -> DocType | None:
    if value and value not in get_args(DocType):
        raise ValidationError(f"doc_type is one of {', '.join(get_args(DocType))}.", field="doc_type")
    return cast(DocType, value) if value else None


def _metadata(value: str | None) -> dict[str, Any]:
    if not value:
        return {}
    try:
        metadata = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise ValidationError("metadata is not valid JSON.", field="metadata") from error
    if not isinstance(metadata, dict):
        raise ValidationError("metadata has to be a JSON object.", field="metadata")
    return metadata


def _unknown(document_id: str) -> NotFound:
    return NotFound(f"There is no document {document_id} in this workspace.")
