"""Documents that a command sends, and their progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from cragside.domain.errors import ProcessingError

if TYPE_CHECKING:
    from cragside.domain.document import DocType

_NO_DOCUMENTS = "The service did not answer with documents. Is --api the address of cragside?"


@dataclass(frozen=True, slots=True)
class Offer:
    """A document to index: a file with its content, or a page whose URL is `name` and whose `content` is None.

    `source` identifies it in its workspace; the default is its name. A file that was `named` itself fails where a file
    of a folder is skipped.
    """

    name: str
    content: bytes | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    named: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """The options with which documents are indexed."""

    enrich: bool = True
    doc_type: "DocType | None" = None


@dataclass(frozen=True, slots=True)
class IndexingProgress:
    """The progress of a document. A step is the embedding or the annotation of a part.

    After an upload, `outcome` is `new`, `changed` or `unchanged`, and `unread` names the parts of the file that could
    not be read.
    """

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
    content_hash: str
    outcome: str = ""
    unread: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read a route's JSON of a document. Raises `ProcessingError` for other JSON."""
        try:
            enrichment = document["enrichment"]
            # Lists and acceptances have no parts: they count as one.
            parts = document.get("parts") or [{"embedded": document["searchable"], "enrichment": enrichment}]
            unfinished = document["status"] == "pending" or enrichment in ("pending", "processing", "mixed")
            same = ("id", "name", "status", "passages", "error", "searchable", "metadata", "source", "content_hash")
            return cls(
                **{name: document[name] for name in same},
                steps=sum(1 + (part["enrichment"] != "none") for part in parts),
                done=sum(part["embedded"] + (part["enrichment"] in ("enriched", "failed")) for part in parts),
                settled=document["status"] == "failed" or not unfinished,
                outcome=document.get("outcome", ""),
                unread=document.get("unread", ""),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ProcessingError(_NO_DOCUMENTS) from error


def documents_in(answer: Any) -> list[dict[str, Any]]:
    """Return the documents of an answer. Raises `ProcessingError` if the answer has no such list."""
    listed = answer.get("documents") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        raise ProcessingError(_NO_DOCUMENTS)
    return listed
