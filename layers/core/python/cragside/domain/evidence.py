"""Passages of evidence, from documents and from the web."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from cragside.domain.errors import ValidationError
from cragside.domain.indexing import DocumentRecord, Passage

EvidenceSource = Literal["local", "web"]


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
    stored: tuple[DocumentRecord, Passage] | None = field(default=None, compare=False, repr=False)

    @property
    def whole(self) -> str:
        """Return the title and the text, as a reader sees them."""
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
        """Return the `score`, under a name that tells it from the similarity."""
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
