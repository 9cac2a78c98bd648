"""The models of `/v1/documents`."""

from typing import Annotated, Any, Literal
from unicodedata import category

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from cragside.application.uploads import UPLOAD_ID
from cragside.domain.document import DocType
from cragside.domain.indexing import Acceptance, DocumentRecord, DocumentStatus, EnrichmentStatus
from cragside.entrypoints.http.models import WORKSPACE, Shape, WorkspaceRequest

MOST_NAME_CHARACTERS = 1024
# As long as a path can be on Linux.
MOST_SOURCE_CHARACTERS = 4096
MOST_SEARCH_CHARACTERS = 200
MOST_TYPE_CHARACTERS = 40
_SOURCE = "What identifies it in its workspace: a path, an address or the client's own id."


def document_name(name: str) -> str:
    """A valid name of a document. Raises `ValueError`."""
    name = name.strip()
    if not name or len(name) > MOST_NAME_CHARACTERS or not name.isprintable():
        raise ValueError(f"A document's name has 1 to {MOST_NAME_CHARACTERS} printable characters: rename it")
    return name


def document_source(source: str) -> str:
    """A valid source of a document. Raises `ValueError`."""
    source = source.strip()
    if not source or len(source) > MOST_SOURCE_CHARACTERS or any(category(mark) == "Cc" for mark in source):
        raise ValueError(f"A document's source has 1 to {MOST_SOURCE_CHARACTERS} characters and no control characters")
    return source


_Name = Annotated[str, AfterValidator(document_name)]
_Source = Annotated[str, AfterValidator(document_source)]


class DocumentRequest(WorkspaceRequest):
    """A document as JSON: a `text` with its `name`, a `url` to fetch, or an `upload` with its `name`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "harbour.md", "text": "The keeper lights the lamp at dusk."}]}
    )

    text: str | None = Field(None, description="The text itself; needs a name.")
    name: _Name | None = Field(None, description="The name that people see. Without it, a page is named by its URL.")
    source: _Source | None = Field(
        None,
        validation_alias=AliasChoices("source", "id"),
        description=f"{_SOURCE} Without it the URL, or the name. May be called `id` as well.",
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


class DocumentMove(BaseModel):
    """The new source and name of a document."""

    model_config = ConfigDict(extra="forbid")

    source: _Source = Field(description=_SOURCE)
    name: _Name = Field(description="The name that people see.")


class DocumentForm(BaseModel):
    """A form of files. Its fields come before its files."""

    files: list[bytes] = Field(
        description="One part for each file, with its filename.", json_schema_extra={"minItems": 1}
    )
    source: str | None = Field(
        None, description=f"{_SOURCE} Without it the file's name. May be called `id` as well. For one file alone."
    )
    workspace: str | None = Field(None, description=WORKSPACE)
    enrich: bool = Field(True, description="Whether keywords, entities, a summary and the graph follow.")
    doc_type: DocType | None = Field(None, description="The kind of text; detected if missing.")
    metadata: str | None = Field(None, description="A JSON object with fields by which passages can be filtered.")


class DocumentBody(Shape):
    """A document, without its content. Times are ISO 8601 in UTC, sizes in bytes."""

    id: str = Field(description="Id of the document.")
    name: str = Field(description="Name of the document.")
    source: str = Field(description="What identifies it in its workspace.")
    label: str = Field(description="Its name, with a part of its source if others have the same name.")
    title: str = Field(description="Title of the document, for citations.")
    file_type: str = Field(description="Type of the file, such as `pdf`.")
    doc_type: DocType = Field(description="Kind of text.")
    status: DocumentStatus = Field(
        description="`searchable` once its whole text is, `enriched` once all of it is annotated."
    )
    searchable: bool = Field(description="Whether its whole text is searchable.")
    enrichment: EnrichmentStatus | Literal["mixed"] = Field(
        description="Progress of the annotation; `mixed` if parts differ."
    )
    error: str = Field(description="Why it failed; empty if it did not.")
    unread: str = Field(description="What of the file was not read, and why; empty if all of it was.")
    size: int = Field(description="Size of the file in bytes.")
    characters: int = Field(description="Length of the text.")
    content_hash: str = Field(description="Equal for equal texts.")
    passages: int = Field(description="Number of passages.")
    track: str = Field(description="The client's id for the document or its request; empty if there is none.")
    created_at: str = Field(description="When it was added, ISO 8601 in UTC.")
    updated_at: str = Field(description="When it changed last, ISO 8601 in UTC.")
    metadata: dict[str, Any] = Field(description="Fields by which passages can be filtered.")


class PartBody(Shape):
    """The passages `first` to `last` of a document, which are annotated together."""

    number: int = Field(description="Number of the part, from 0.")
    first: int = Field(description="Number of its first passage, from 0.")
    last: int = Field(description="Number of its last passage.")
    embedded: bool = Field(description="Whether its text is searchable.")
    enrichment: EnrichmentStatus = Field(description="Progress of its annotation.")
    error: str = Field(description="Why it failed; empty if it did not.")
    enriched_at: str | None = Field(description="When it was annotated, ISO 8601 in UTC.")
    tier3: dict[str, Any] | None = Field(
        description="A model's annotations: those of the document in its first part, and the `extraction` of each part."
    )


class DocumentDetail(DocumentBody):
    """A document with its parts, and its annotations without a model (`tier1`) and by a model (`tier3`).

    `extraction` in `tier3` counts what the graph got: `entities`, `relations`, `malformed` lines of answers (left out),
    and passages with an `unusable` answer.
    """

    tier1: dict[str, Any] = Field(description="Annotations that need no model, such as headings and links.")
    tier3: dict[str, Any] = Field(description="Annotations by a model or by rules, by type of document.")
    parts: list[PartBody] = Field(description="The parts, in their order.")


class DocumentPage(Shape):
    """Some of the documents, in the order that was asked for."""

    documents: list[DocumentBody] = Field(description="The documents.")
    total: int = Field(description="How many there are in all.")
    limit: int = Field(description="The requested number.")
    offset: int = Field(description="How many were skipped.")
    file_types: dict[str, int] = Field(
        description="How many documents of each type of file the whole workspace has, whatever is asked for."
    )


class PassagePlace(Shape):
    """Where a passage stands in the text of its document, in Unicode code points. Null where it was not found."""

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


class AcceptedDocument(DocumentBody):
    """An accepted document. `new` and `changed` ones are being indexed, `unchanged` ones existed already."""

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


class Restarted(BaseModel):
    """How many tasks were queued."""

    tasks: int = Field(description="Number of tasks that were queued.")


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


def accepted_of(acceptance: Acceptance) -> AcceptedDocument:
    """An accepted document."""
    fields = {**dict(DocumentBody.model_validate(acceptance.record)), "unread": acceptance.unread}
    return AcceptedDocument(**fields, outcome=acceptance.outcome)


def progress_of(record: DocumentRecord) -> DocumentProgress:
    """The progress of a document."""
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
