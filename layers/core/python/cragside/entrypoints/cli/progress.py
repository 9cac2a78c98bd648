"""What a command sends to be indexed, and the progress of documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cragside.domain.errors import ProcessingError

if TYPE_CHECKING:
    from cragside.domain.document import DocType

_NO_DOCUMENTS = "The service did not answer with documents. Is --api the address of cragside?"


@dataclass(frozen=True, slots=True)
class Offer:
    """A document to index: a file with its content, or without `content` a page with `name` as its URL.

    `source` identifies it in its workspace; the default is its name. A `named` one fails where others are skipped.
    """

    name: str
    content: bytes | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    named: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """How documents are indexed."""

    enrich: bool = True
    doc_type: "DocType | None" = None


@dataclass(frozen=True, slots=True)
class IndexingProgress:
    """The progress of a document. A step is the embedding or the annotation of a part."""

    id: str
    name: str
    status: str
    passages: int
    error: str
    steps: int
    done: int
    searchable: bool
    settled: bool
    metadata: Mapping[str, Any]
    source: str
    label: str
    content_hash: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """The progress from a route's JSON of a document. Raises `ProcessingError` for other JSON."""
        try:
            name, enrichment = document["name"], document["enrichment"]
            # Lists and acceptances tell no parts: as much as one is there.
            parts = document.get("parts") or [{"embedded": document["searchable"], "enrichment": enrichment}]
            unfinished = document["status"] == "pending" or enrichment in ("pending", "processing", "mixed")
            return cls(
                document["id"],
                name,
                document["status"],
                document["passages"],
                document["error"],
                steps=sum(1 + (part["enrichment"] != "none") for part in parts),
                done=sum(part["embedded"] + (part["enrichment"] in ("enriched", "failed")) for part in parts),
                searchable=document["searchable"],
                settled=document["status"] == "failed" or not unfinished,
                metadata=document["metadata"],
                source=document["source"],
                label=document["label"],
                content_hash=document["content_hash"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ProcessingError(_NO_DOCUMENTS) from error


@dataclass(frozen=True, slots=True)
class Taken:
    """A document that was accepted; `outcome` is `new`, `changed` or `unchanged`.

    `unread` says what of its file was not read.
    """

    progress: IndexingProgress
    outcome: str
    unread: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """The document of a route's answer to an upload."""
        return cls(IndexingProgress.of(document), document["outcome"], document.get("unread", ""))


def documents_in(answer: Any) -> list[dict[str, Any]]:
    """The documents of an answer. Raises `ProcessingError` if the answer has no such list."""
    listed = answer.get("documents") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise ProcessingError(_NO_DOCUMENTS)
    return listed
