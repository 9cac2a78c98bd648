"""What is written into a ledger, and the parts that a worker writes for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from cragside.adapters.lightrag.storable import storable
from cragside.domain.document import SourceText
from cragside.domain.indexing import EnrichmentStatus


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage in the making: its tokens, its page, how its place is cited, and the sections that it goes through."""

    text: str
    tokens: int
    page: int | None
    section: str
    sections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of a version; `key` is LightRAG's name of it as a document."""

    version: int
    number: int
    key: str
    first: int
    last: int
    embedded: bool
    enrichment: EnrichmentStatus


@dataclass(frozen=True, slots=True)
class Entry:
    """A storable text that is to be a document's current version, cut into parts of `part_passages` passages.

    `digest` says which text it is, `cut` which passages: another text, or other passages, have different ones.
    """

    identifier: str
    digest: str
    cut: str
    source: SourceText
    pieces: Sequence[Piece]
    part_passages: int
    enrich: bool
    track: str = ""

    @property
    def key(self) -> str:
        """The beginning of the keys of its parts and passages."""
        return f"{self.identifier}-{self.cut}"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A document that may be an exchange which an older version put beside the documents."""

    identifier: str
    name: str
    text: str
    track: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """When and how a document was accepted."""

    track: str
    enrich: bool
    created_at: str
    updated_at: str


def title_of(source: SourceText) -> str:
    """The title of a text as it is stored."""
    return storable(source.title or source.name)


def behind(source: str, track: str) -> str:
    """The source with its track behind it."""
    return source + storable(f"#{quote(track, safe='')}")


def json_of(value: Mapping[str, Any]) -> str:
    """Metadata as they are stored."""
    return json.dumps(dict(value), default=str)


def parsed(written: str) -> Any:
    """What `json_of` wrote of our own facts. orjson is ten times as fast, but reads no NaN and no lone surrogate."""
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        return json.loads(written)


def parsed_metadata(written: str) -> dict[str, Any]:
    """What `json_of` wrote of a client's metadata. orjson would round its large integers."""
    return {} if written == "{}" else dict(json.loads(written))
