"""Adds the documents of a request: the files of a form, or one text, URL or upload as JSON."""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, TypedDict, TypeVar, cast, get_args

import orjson
from fastapi import Request
from pydantic import BaseModel
from pydantic import ValidationError as PydanticValidationError

from cragside.domain.document import DocType
from cragside.domain.errors import CragsideError, PayloadTooLarge, ValidationError
from cragside.domain.indexing import Acceptance
from cragside.entrypoints.http.body_limit import json_body
from cragside.entrypoints.http.errors import complaint_of, for_client
from cragside.entrypoints.http.multipart import FormPart, UploadMemory, form_parts
from cragside.entrypoints.http.request_access import choose_workspace, container_of
from cragside.entrypoints.http.v1.document_models import (
    AcceptedDocuments,
    DocumentRequest,
    RefusedDocument,
    accepted_of,
    document_name,
    document_source,
)

_MOST_PARTS = 100

Shape = TypeVar("Shape", bound=BaseModel)


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
        asked = parsed(DocumentRequest, await json_body(self._request))
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
            accepted = await self._intake.file(
                bytes(part.content),
                name=_valid(document_name, name, "filename"),
                content_type=part.content_type,
                **options,
            )
        except CragsideError as error:
            self._refused.append((name, for_client(error)))
        else:
            self._accepted.append(accepted)

    def answer(self) -> AcceptedDocuments:
        """The answer. Raises the first refusal if no document was accepted."""
        return answer_of(self._accepted, self._refused)


def answer_of(accepted: Sequence[Acceptance], refusals: Sequence[tuple[str, CragsideError]]) -> AcceptedDocuments:
    """What became of documents. Raises the first refusal if no document was accepted."""
    refused = [
        RefusedDocument(name=name, type=error.code, message=error.message, details=dict(error.details))
        for name, error in refusals
    ]
    if not accepted and refusals:
        first = refusals[0][1]
        if len(refused) > 1:
            first.details = {**first.details, "errors": [each.model_dump() for each in refused]}
        raise first
    return AcceptedDocuments(documents=[accepted_of(each) for each in accepted], errors=refused)


def parsed(shape: type[Shape], body: bytes) -> Shape:
    """The body as a model. Raises `ValidationError`."""
    try:
        return shape.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise ValidationError("The body is not valid JSON.") from error
    except PydanticValidationError as error:
        complaints = error.errors(include_input=False, include_url=False, include_context=False)
        raise ValidationError("; ".join(complaint_of(dict(each)) for each in complaints[:3]) + ".") from error


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
