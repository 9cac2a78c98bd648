"""Values that are written into a ledger: texts cut into parts and passages."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from cragside.domain.document import SourceText
from cragside.domain.indexing import EnrichmentStatus
from cragside.store.storable import storable

# The namespace in which LightRAG keeps the texts of passages.
TEXTS = "text_chunks"
# A longer title would say more than a short passage.
_LONGEST_TITLE = 200
_HEADING_SIGNS = "#=*_ \t\n"


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
    """A part of a version; `key` is LightRAG's name of it as a document.

    Its passages are searched with `title`, which is "" for a document that has no title but its name.
    """

    version: int
    number: int
    key: str
    first: int
    last: int
    embedded: bool
    enrichment: EnrichmentStatus
    title: str = ""


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
        """Return the beginning of the keys of its parts and passages."""
        return f"{self.identifier}-{self.cut}"


def document_of_passage(key: str) -> str:
    """Return the id of the document of a passage, by the key that `parts_of` gives it."""
    return key.rsplit("-", 4)[0]


def title_of(source: SourceText) -> str:
    """Return the title of a text as it is stored."""
    return storable(source.title or source.name)


def searched_title(title: str, name: str) -> str:
    """Return the title by which a document's passages are searched, "" if it is just the document's name."""
    return "" if title == name else title


def searched_text(title: str, text: str) -> str:
    """Return the text by which searches find a passage: the document's title, and the text.

    A passage that begins with the title is searched as it is.
    """
    title = " ".join(title[:_LONGEST_TITLE].split())
    begin = text[: 2 * _LONGEST_TITLE].lstrip(_HEADING_SIGNS)
    if not title or (begin.casefold().startswith(title.casefold()) and not begin[len(title) :][:1].isalnum()):
        return text
    return f"{title}\n{text}"


def behind(source: str, track: str) -> str:
    """Return the source with its track behind it."""
    return source + storable(f"#{quote(track, safe='')}")


def text_hash(text: str) -> bytes:
    """Return the key of a text in the cache of vectors."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def json_of(value: Mapping[str, Any]) -> str:
    """Return metadata as they are stored."""
    return json.dumps(dict(value), default=str)


def parsed(written: str) -> Any:
    """Parse our own facts from `json_of`. orjson is ten times as fast, but reads no NaN and no lone surrogate."""
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        return json.loads(written)


def parsed_metadata(written: str) -> dict[str, Any]:
    """Parse a client's metadata from `json_of`. orjson would round its large integers."""
    return {} if written == "{}" else dict(json.loads(written))


@dataclass(frozen=True, slots=True)
class CutPassage:
    """A passage. `places` names its sections, `text` is its row in LightRAG's storage of texts."""

    id: str
    number: int
    page: int | None
    places: str
    text: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CutPart:
    """A part with its passages."""

    number: int
    key: str
    first: int
    passages: list[CutPassage]

    @property
    def last(self) -> int:
        """Return the number of its last passage."""
        return self.first + len(self.passages) - 1


def parts_of(entry: Entry) -> Iterator[CutPart]:
    """Yield the parts of a text in their order."""
    path = quote(entry.source.name, safe="")
    for number, first in enumerate(range(0, len(entry.pieces), entry.part_passages)):
        key = f"{entry.key}-{number}"
        pieces = enumerate(entry.pieces[first : first + entry.part_passages])
        yield CutPart(number, key, first, [_passage(key, order, first + order, piece, path) for order, piece in pieces])


def sections_in(places: str) -> tuple[str, tuple[str, ...]]:
    """Return the cited section of a passage, and the sections that it goes through."""
    section, *sections = places.split("\n")
    return section, tuple(sections or filter(None, [section]))


def _passage(part_key: str, order: int, number: int, piece: Piece, path: str) -> CutPassage:
    key = f"{part_key}-chunk-{order:03d}"
    text = {
        "_id": key,
        "content": piece.text,
        "tokens": piece.tokens,
        "chunk_order_index": number,
        "full_doc_id": part_key,
        "file_path": path,
        "llm_cache_list": [],
    }
    return CutPassage(key, number, piece.page, _places(piece), text)


def _places(piece: Piece) -> str:
    """Write the cited section of a passage and, if there are more, all sections that it goes through: one a line."""
    alone = piece.sections in ((), (piece.section,))
    return storable(piece.section if alone else "\n".join((piece.section, *piece.sections)))
