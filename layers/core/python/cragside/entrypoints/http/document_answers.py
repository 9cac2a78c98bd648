"""Answers with documents: their JSON, and pages of their list."""

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from cragside.domain.document import DocType
from cragside.domain.indexing import DocumentRecord, DocumentStatus, EnrichmentStatus, Listing
from cragside.entrypoints.http.models import Shape

if TYPE_CHECKING:
    from cragside.bootstrap import Container


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


async def document_page(
    container: "Container",
    workspace: str,
    listing: Listing,
    *,
    sorts: bool = False,
    limit: int,
    offset: int,
    status: DocumentStatus | None = None,
    below: str | None = None,
) -> DocumentPage:
    """List documents. Those `below` a path come in the order of their sources, unless the caller `sorts` them."""
    library = (await container.workspaces.open(workspace)).documents
    if below is None:
        records, total = await library.documents(limit=limit, offset=offset, status=status, listing=listing)
    else:
        inside = [each for each in await library.below(below) if status in (None, each.status) and listing.takes(each)]
        records, total = (listing.ordered(inside) if sorts else inside)[offset : offset + limit], len(inside)
    return DocumentPage(
        documents=records,
        total=total,
        limit=limit,
        offset=offset,
        file_types=await library.file_types(),
    )


async def document_record(container: "Container", workspace: str, document_id: str) -> DocumentRecord | None:
    """Return a document. It is looked up in a task of its own: a waiting stream keeps no workspace open."""
    return await asyncio.create_task(container.intake.document(document_id, workspace=workspace))
