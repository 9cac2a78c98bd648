"""Contents of a store, as plain rows that every database can write out and take in.

Rows come in the order of the kinds below, and those of a kind in the order in which they were stored.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import NamedTuple

SearchText = Callable[[str], str]


class FactsRow(NamedTuple):
    """The store itself: the model of its vectors and their length, None without vectors."""

    embedding_model: str | None
    dimensions: int | None
    untidy: bool


class DocumentRow(NamedTuple):
    """A version of a document. `version` is a number that other rows refer to; the target may give another one."""

    version: int
    id: str
    content_hash: str
    state: str
    name: str
    title: str
    file_type: str
    doc_type: str
    size: int
    characters: int
    created_at: str
    updated_at: str
    track: str
    enrich: bool
    tier1: str
    metadata: str
    marks: str
    text: str


class OriginRow(NamedTuple):
    """The source of a document."""

    document_id: str
    source: str


class PartRow(NamedTuple):
    """A part of a version."""

    version: int
    number: int
    key: str
    first: int
    last: int
    embedded: bool
    enrichment: str
    error: str
    tier3: str | None
    enriched_at: str | None


class PassageRow(NamedTuple):
    """A passage. `text` is its JSON in LightRAG's storage of texts, None for a text that is gone."""

    id: str
    version: int
    part: int
    number: int
    page: int | None
    section: str
    tier2: str | None
    text: str | None


class ValueRow(NamedTuple):
    """JSON in another of LightRAG's key-value storages."""

    namespace: str
    id: str
    value: str


class NodeRow(NamedTuple):
    """An entity, as JSON."""

    id: str
    value: str


class EdgeRow(NamedTuple):
    """A relation, as JSON. Its ends are in alphabetical order."""

    source: str
    target: str
    value: str


class VectorRow(NamedTuple):
    """A row of a vector storage, as JSON, with the bytes of its float32 vector.

    `searched` is what full-text search sees of a passage, and None for other rows.
    """

    namespace: str
    id: str
    value: str
    vector: bytes
    searched: str | None


class MentionRow(NamedTuple):
    """A passage that mentions an entity or a relation."""

    kind: str
    name: str
    passage: str


class EmbeddingRow(NamedTuple):
    """A vector in the cache, by the SHA-256 of its text."""

    model: str
    text_hash: bytes
    document_id: str
    vector: bytes


class QueryRow(NamedTuple):
    """A recorded query."""

    id: str
    text: str
    created_at: str


Row = (
    FactsRow
    | DocumentRow
    | OriginRow
    | PartRow
    | PassageRow
    | ValueRow
    | NodeRow
    | EdgeRow
    | VectorRow
    | MentionRow
    | EmbeddingRow
    | QueryRow
)
# Some rows of one kind; never empty.
Batch = Sequence[Row]
Batches = AsyncGenerator[Batch, None]


def rows_at_once(kind: type[Row]) -> int:
    """Return the number of rows of a kind that are in memory at a time. A document's row has its whole text."""
    return 8 if kind is DocumentRow else 500


async def inserted(batches: Batches, more: AsyncIterator[Batch], before: tuple[type[Row], ...]) -> Batches:
    """Batches with others ahead of the first one of these kinds, or at the end."""
    yielded = False
    async for batch in batches:
        if not yielded and isinstance(batch[0], before):
            yielded = True
            async for rows in more:
                yield rows
        yield batch
    if not yielded:
        async for rows in more:
            yield rows
