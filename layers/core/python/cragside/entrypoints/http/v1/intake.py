"""The routes that add documents: files of a form, a text, URL or upload as JSON, and samples."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Literal, TypedDict, cast, get_args

import orjson
from fastapi import APIRouter, Request
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator
from pydantic import ValidationError as PydanticValidationError

from cragside.application.uploads import UPLOAD_ID, UploadOffer
from cragside.domain.document import DocType
from cragside.domain.errors import CragsideError, PayloadTooLarge, ValidationError
from cragside.domain.indexing import Acceptance
from cragside.entrypoints.http.document_answers import DocumentBody
from cragside.entrypoints.http.errors import error_responses, for_client
from cragside.entrypoints.http.models import WORKSPACE, Shape, WorkspaceRequest, complaints_of
from cragside.entrypoints.http.request_access import AppContainer, choose_workspace, container_of, note_documents
from cragside.entrypoints.http.request_bodies import (
    BoundedRoute,
    FormPart,
    UploadMemory,
    form_parts,
    json_body,
    media_type,
)
from cragside.entrypoints.http.v1.documents import (
    SOURCE,
    DocumentName,
    DocumentSource,
    document_name,
    document_source,
)
from cragside.entrypoints.samples.documents import QUESTIONS, corpus, count

_MOST_PARTS = 100

router = APIRouter(tags=["documents"], route_class=BoundedRoute, responses=error_responses())


class DocumentRequest(WorkspaceRequest):
    """A document as JSON: a `text` with its `name`, a `url` to fetch, or an `upload` with its `name`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "harbour.md", "text": "The keeper lights the lamp at dusk."}]}
    )

    text: str | None = Field(None, description="The text itself; needs a name.")
    name: DocumentName | None = Field(
        None, description="The name that people see. Without it, a page is named by its URL."
    )
    source: DocumentSource | None = Field(
        None,
        validation_alias=AliasChoices("source", "id"),
        description=f"{SOURCE} Without it the URL, or the name. May be called `id` as well.",
    )
    title: str | None = Field(None, max_length=1000, description="Title of the text, for citations.")
    url: str | None = Field(None, max_length=8192, description="A public page or file to fetch, http or https.")
    upload: str | None = Field(
        None, pattern=UPLOAD_ID, description="Id of a file that was uploaded to the bucket; needs the file's name."
    )
    enrich: bool = Field(True, description="Whether keywords, entities, a summary and the graph follow.")
    doc_type: DocType | None = Field(None, description="The kind of text; detected if missing.")
    metadata: dict[str, Any] = Field({}, description="Fields by which passages can be filtered.")

    @model_validator(mode="after")
    def _one_source(self) -> "DocumentRequest":
        if [self.text, self.url, self.upload].count(None) != 2:
            raise ValueError("Give one of text (with name), url and upload (with name)")
        if self.url is None and self.name is None:
            raise ValueError("A text or an upload needs a name")
        return self


class DocumentForm(BaseModel):
    """A form of files. Its fields come before its files."""

    files: list[bytes] = Field(
        description="One part for each file, with its filename.", json_schema_extra={"minItems": 1}
    )
    source: str | None = Field(
        None, description=f"{SOURCE} Without it the file's name. May be called `id` as well. For one file alone."
    )
    workspace: str | None = Field(None, description=WORKSPACE)
    enrich: bool = Field(True, description="Whether keywords, entities, a summary and the graph follow.")
    doc_type: DocType | None = Field(None, description="The kind of text; detected if missing.")
    metadata: str | None = Field(None, description="A JSON object with fields by which passages can be filtered.")


class AcceptedDocument(DocumentBody):
    """An accepted document. `new` and `changed` ones are being indexed, `unchanged` ones existed already.

    `searchable` says if it can be found now. If not, it is queued, and its `status` is `pending`.
    """

    outcome: Literal["new", "changed", "unchanged"] = Field(
        description="`unchanged` if the workspace has the same text of this source."
    )


class RefusedDocument(BaseModel):
    """A refused document, and why."""

    name: str = Field(description="Name of the document; empty for an error of the request.")
    type: str = Field(description="Code of the error.")
    message: str = Field(description="What is wrong, and what to do.")
    details: dict[str, Any] = Field(description="Facts for programs.")


class AcceptedDocuments(BaseModel):
    """The accepted and refused documents of a request."""

    documents: list[AcceptedDocument] = Field(description="The accepted documents.")
    errors: list[RefusedDocument] = Field(description="The refused ones.")


_BODIES = {
    "multipart/form-data": {"schema": DocumentForm.model_json_schema()},
    "application/json": {"schema": DocumentRequest.model_json_schema()},
}
# In the query, the workspace is known before the fields of a form.
_WORKSPACE = {"name": "workspace", "in": "query", "schema": {"type": "string"}, "description": WORKSPACE}


@router.post(
    "/v1/documents",
    status_code=202,
    openapi_extra={"requestBody": {"content": _BODIES, "required": True}, "parameters": [_WORKSPACE]},
)
async def add_documents(request: Request) -> AcceptedDocuments:
    """Add documents: files of a form, or one text, URL or upload as JSON. `searchable` says which can be found now.

    Refused documents do not affect the others. If all are refused, the answer is the first error.
    """
    intake = RequestIntake(request)
    if media_type(request) == "multipart/form-data":
        await intake.form()
    else:
        await intake.json()
    return intake.answer()


class _Options(TypedDict):
    """The arguments that all methods of `Intake` share."""

    source: str
    workspace: str
    doc_type: DocType | None
    metadata: dict[str, Any]
    enrich: bool


class RequestIntake:
    """Adds the documents of one request."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._intake = container_of(request).intake
        self._memory: UploadMemory = request.app.state.upload_memory
        self._limit = container_of(request).settings.max_file_bytes
        self._accepted: list[Acceptance] = []
        self._refused: list[tuple[str, CragsideError]] = []

    async def json(self) -> None:
        """Add the document of a JSON body."""
        asked = _asked(await json_body(self._request))
        workspace = choose_workspace(self._request, asked.workspace)
        options = _Options(
            source=asked.source or "",
            workspace=workspace,
            doc_type=asked.doc_type,
            metadata=asked.metadata,
            enrich=asked.enrich,
        )
        name = asked.name or ""
        if asked.url is not None:
            accepted = await self._intake.page(asked.url, name=asked.name, **options)
        elif asked.upload is not None:
            accepted = await self._upload(asked.upload, name, options)
        else:
            accepted = await self._intake.written(asked.text or "", name=name, title=asked.title or "", **options)
        self._accepted.append(accepted)

    async def _upload(self, identifier: str, name: str, options: "_Options") -> Acceptance:
        # The size is unknown until the file is here.
        held = self._limit
        self._memory.take(held)
        try:
            uploads = container_of(self._request).uploads
            async with uploads.opened(identifier, workspace=options["workspace"]) as content:
                self._memory.give_back(held - len(content))
                held = len(content)
                return await self._intake.file(content, name=name, **options)
        finally:
            self._memory.give_back(held)

    async def form(self) -> None:
        """Add the files of a form, each as soon as it is complete. A later error does not undo that."""
        try:
            await self._files()
        except CragsideError as error:
            if not self._accepted:
                raise
            self._refused.append(("", for_client(error)))

    async def _files(self) -> None:
        fields: dict[str, str] = {}
        names: list[str] = []
        parts = form_parts(self._request, file_limit=self._limit, most_parts=_MOST_PARTS, memory=self._memory)
        async with aclosing(parts):
            async for part in parts:
                if part.filename is None:
                    if names:
                        raise ValidationError(
                            f"The field {part.name} comes after a file. Send fields first: the files before it are "
                            "added.",
                            field=part.name,
                        )
                    fields[part.name] = part.text
                elif part.filename or part.size:  # a browser sends an empty part for a file that was not chosen
                    await self._file(part, fields, names)
                    names.append(part.filename)
        if not names:
            raise ValidationError("The form has no file.", field="files")

    async def _file(self, part: FormPart, fields: dict[str, str], before: Sequence[str]) -> None:
        # Outside of `try`, because an error in the fields is one of the whole request.
        options = _options(fields, choose_workspace(self._request, fields.get("workspace")))
        if options["source"] and before:
            raise ValidationError(
                "source identifies one document: send each file with a source in a form of its own.", field="source"
            )
        await self.take(part.filename or "", self._read(part, options, before))

    async def _read(self, part: FormPart, options: _Options, before: Sequence[str]) -> Acceptance:
        name = part.filename or ""
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
        named = _valid(document_name, name, "filename")
        return await self._intake.file(bytes(part.content), name=named, content_type=part.content_type, **options)

    async def take(self, name: str, adding: Awaitable[Acceptance]) -> None:
        """Add a document. If it is refused, the others are not."""
        try:
            self._accepted.append(await adding)
        except CragsideError as error:
            self._refused.append((name, for_client(error)))

    def answer(self) -> AcceptedDocuments:
        """Return what became of the documents. Raises the first refusal if none was accepted."""
        refused = [
            RefusedDocument(name=name, type=error.code, message=error.message, details=dict(error.details))
            for name, error in self._refused
        ]
        if not self._accepted and refused:
            first = self._refused[0][1]
            if len(refused) > 1:
                first.details = {**first.details, "errors": [each.model_dump() for each in refused]}
            raise first
        note_documents(self._request, (each.record.id for each in self._accepted))
        return AcceptedDocuments(documents=[accepted_of(each) for each in self._accepted], errors=refused)


def _asked(body: bytes) -> DocumentRequest:
    """Read a body of JSON. Raises `ValidationError`."""
    try:
        return DocumentRequest.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise ValidationError("The body is not valid JSON.") from error
    except PydanticValidationError as error:
        complaints = error.errors(include_input=False, include_url=False, include_context=False)
        raise ValidationError(f"{complaints_of(complaints)}.") from error


def _options(fields: dict[str, str], workspace: str) -> _Options:
    source = fields.get("source") or fields.get("id")
    return _Options(
        source=_valid(document_source, source, "source") if source else "",
        workspace=workspace,
        doc_type=_doc_type(fields.get("doc_type")),
        metadata=_metadata(fields.get("metadata")),
        enrich=_flag(fields.get("enrich", "true")),
    )


def _valid(check: Callable[[str], str], text: str, field: str) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise ValidationError(f"{error}.", field=field) from error


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
        raise ValidationError("metadata must be a JSON object.", field="metadata")
    return metadata


def accepted_of(acceptance: Acceptance) -> AcceptedDocument:
    """Return an accepted document."""
    fields = {**dict(DocumentBody.model_validate(acceptance.record)), "unread": acceptance.unread}
    return AcceptedDocument(**fields, outcome=acceptance.outcome)


class UploadBody(Shape):
    """A form for one file, to be sent to `url` as `multipart/form-data`."""

    id: str = Field(description="Pass it to POST /v1/documents as `upload`.")
    url: str = Field(description="Where to send the form.")
    fields: dict[str, str] = Field(description="Fields to send before the file. The file's field is `file`.")
    expires_at: datetime = Field(description="The form is valid until then; ISO 8601 in UTC.")
    max_bytes: int = Field(description="The largest size of the file.")


@router.post("/v1/documents/uploads", status_code=201, response_model=UploadBody)
async def offer_upload(request: Request, asked: WorkspaceRequest, container: AppContainer) -> UploadOffer:
    """Return a form that uploads a file to a bucket. POST /v1/documents then takes it in."""
    return await container.uploads.offer(choose_workspace(request, asked.workspace))


class Samples(BaseModel):
    """The sample documents, and questions that they answer."""

    documents: int = Field(description="How many documents there are.")
    questions: list[str] = Field(description="Questions that they answer.")


@router.get("/v1/samples")
async def get_samples() -> Samples:
    """Count the sample documents that come with cragside, and list questions to try them with."""
    return Samples(documents=count(), questions=list(QUESTIONS))


@router.post("/v1/samples", status_code=202)
async def add_samples(request: Request, asked: WorkspaceRequest, container: AppContainer) -> AcceptedDocuments:
    """Add the sample documents to a workspace, like any others."""
    workspace = choose_workspace(request, asked.workspace)
    await (await container.workspaces.open(workspace)).documents.check_writable()
    intake = RequestIntake(request)
    for text in corpus():
        await intake.take(text.name, container.intake.text(text, workspace=workspace))
    return intake.answer()
