"""Passages of evidence, and texts to index."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

from cragside.domain.errors import ValidationError

if TYPE_CHECKING:
    from cragside.domain.indexing import DocumentRecord, Passage

EvidenceSource = Literal["local", "web"]
DocType = Literal["code", "slack", "email", "meeting", "pdf", "image", "article", "text"]

# Separates the headings in the path to a section.
_BELOW = " > "


@dataclass(frozen=True, slots=True)
class Document:
    """A passage. `score` is its relevance, the probability (0..1) that it is relevant to the query; None if ungraded.

    `similarity` is the cosine (0..1) between its vector and the query's, None where nothing has compared them.
    `metadata` holds what a citation shows beyond title and URL: filename, page, section. `stored` is the document of a
    local passage and the passage as the store has it.
    """

    id: str
    content: str
    source: EvidenceSource
    title: str = ""
    url: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    similarity: float | None = None
    stored: "tuple[DocumentRecord, Passage] | None" = field(default=None, compare=False, repr=False)

    @property
    def whole(self) -> str:
        """The title and the text, as a reader sees them."""
        return f"{self.title}\n{self.content}"

    def __post_init__(self) -> None:
        if not self.id:
            raise ValidationError("A document needs an id.")
        if not self.content.strip():
            raise ValidationError(f"Document {self.id} is empty.")
        if self.source not in ("local", "web"):
            raise ValidationError(f"Document {self.id}: source is 'local' or 'web', not {self.source!r}.")
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValidationError(f"Document {self.id}: score {self.score} is not within 0..1.")
        if self.similarity is not None and not 0.0 <= self.similarity <= 1.0:
            raise ValidationError(f"Document {self.id}: similarity {self.similarity} is not within 0..1.")

    @property
    def relevance(self) -> float | None:
        """The `score`, under a name that tells it from the similarity."""
        return self.score

    def compared(self, similarity: float) -> "Document":
        """Return the same passage with its similarity to the query, 0..1."""
        return replace(self, similarity=similarity)

    def graded(self, score: float) -> "Document":
        """Return the same passage with its relevance, 0..1."""
        return replace(self, score=score)


def number_of(identifier: object, documents: Sequence[Document]) -> int | None:
    """Return the number of the document with an id, from 1. None if it is not among them."""
    return next((number for number, each in enumerate(documents, start=1) if each.id == identifier), None)


@dataclass(frozen=True, slots=True)
class Mark:
    """The page (from 1) and section of the text from the character `start` to the next mark.

    If `apart`, no passage crosses the start, as with a row of a table.
    """

    start: int
    page: int | None = None
    section: str = ""
    apart: bool = False


def cited_section(sections: Sequence[str]) -> str:
    """Return the citation of a passage that covers these sections, given in their order as paths: "A > B".

    It names the first and the last section, and their common path once: "A > B – C" for "A > B" and "A > C". It is ""
    for a passage that begins outside of any section.
    """
    if not sections or not sections[0]:
        return ""
    first, *others = dict.fromkeys(filter(None, sections))
    if not others:
        return first
    path = others[-1].split(_BELOW)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first.split(_BELOW), path, strict=False)))
    return f"{first} – {_BELOW.join(path[shared:] or path)}"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A whole text to index. `name` is shown to people; `source` identifies the document in its workspace.

    A source is a file's absolute path, a page's URL, or an id that the client chose; the default is the name. Two
    sources with one name are two documents.

    `marks` are in the order of their starts. `tier1` holds the loader's annotations, whose fields depend on `doc_type`.
    `properties` are the file's own: its front matter and links. `metadata` comes from the client, or from the
    properties where the client says nothing; searches can filter by it. `unread` says what of the file is missing from
    the text, and why. If it `may_give_more`, another reading of the same bytes may find it.
    """

    name: str
    text: str
    title: str = ""
    file_type: str = "txt"
    doc_type: DocType = "text"
    size: int | None = None
    marks: tuple[Mark, ...] = ()
    tier1: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    unread: str = ""
    may_give_more: bool = False

    def __post_init__(self) -> None:
        if not self.source.strip():
            object.__setattr__(self, "source", self.name)
        if not self.name.strip():
            raise ValidationError("A text to index needs a name.")
        if not self.text.strip():
            raise ValidationError(f"{self.name} is empty. There is nothing to index.")
