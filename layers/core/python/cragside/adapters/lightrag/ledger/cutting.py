"""The parts and passages of a text, as a ledger stores them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cragside.adapters.lightrag.ledger.entries import Entry, Piece
from cragside.adapters.lightrag.storable import storable

# The namespace in which LightRAG keeps the texts of passages.
TEXTS = "text_chunks"


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
        """The number of its last passage."""
        return self.first + len(self.passages) - 1


def parts_of(entry: Entry) -> Iterator[CutPart]:
    """The parts of a text in their order."""
    path = quote(entry.source.name, safe="")
    for number, first in enumerate(range(0, len(entry.pieces), entry.part_passages)):
        key = f"{entry.key}-{number}"
        pieces = enumerate(entry.pieces[first : first + entry.part_passages])
        yield CutPart(number, key, first, [_passage(key, order, first + order, piece, path) for order, piece in pieces])


def sections_in(places: str) -> tuple[str, tuple[str, ...]]:
    """How a passage's section is cited, and the sections that it goes through."""
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
    """How a passage's section is cited and, if that is not the only one, which ones it goes through: one a line."""
    alone = piece.sections in ((), (piece.section,))
    return storable(piece.section if alone else "\n".join((piece.section, *piece.sections)))
