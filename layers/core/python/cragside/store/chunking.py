"""Cut texts into parts and passages, and describe them as a ledger stores them."""

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol
from urllib.parse import quote

import orjson

from cragside.domain.context import CountTokens
from cragside.domain.document import Mark, SourceText, cited_section
from cragside.domain.indexing import EnrichmentStatus
from cragside.domain.tables import TextTables

# Neither XML nor UTF-8 can hold these. One blank for each keeps the offsets of all marks.
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
# Characters of a call: no call into C should keep other threads from running for long.
_CHECKED_AT_ONCE = 50_000


def storable(text: str) -> str:
    """Return the text with a blank for each character that cannot be stored."""
    if len(text) <= _CHECKED_AT_ONCE:
        return _UNSTORABLE.sub(" ", text)
    blocks = (text[start : start + _CHECKED_AT_ONCE] for start in range(0, len(text), _CHECKED_AT_ONCE))
    return "".join(_UNSTORABLE.sub(" ", block) for block in blocks)


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


def digest_of(source: SourceText) -> str:
    """Return one digest for texts with the same passages, pages and sections, in files with the same properties."""
    marks = [[mark.start, mark.page, mark.section, *([True] if mark.apart else [])] for mark in source.marks]
    facts = source.text.strip() + (json.dumps(marks) if marks else "")
    if source.properties:
        facts += json.dumps(dict(source.properties), sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()


def cut_of(digest: str, pieces: Sequence[Piece], part_passages: int) -> str:
    """Return the key of a text and how it was cut into passages and parts: other cuts have other keys."""
    facts = hashlib.sha256(f"{digest} {part_passages}".encode())
    for piece in pieces:
        facts.update(f" {len(piece.text)} {piece.text}".encode())
    return facts.hexdigest()[:12]


# What is split at a time, in characters. LangChain takes a whole text apart before it puts passages together, and no
# call into C should keep other threads from running for long.
_BLOCK = 50_000
_BLOCK_ENDS = ("\n\n", "\n", ". ", " ")


class Chunker(Protocol):
    """Cuts a text into pieces that are `spare` tokens shorter than usual, but at least half as long."""

    def __call__(self, text: str, *, spare: int = 0) -> list[str]: ...  # noqa: D102 (the class says it)


def chunker(count_tokens: CountTokens, size: int, overlap: int) -> Chunker:
    """Make LangChain's recursive splitter: paragraphs, lines, sentences, words; what has no blanks is cut by length.

    Neighbours share up to `overlap` tokens, but for those on either side of the end of a block of 50,000 characters at
    most, which is that of a paragraph, a line, a sentence or a word where there is one.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # loads langchain_core: 0.3 s, 65 MB

    # The splitter asks for the same pieces again and again.
    count = lru_cache(maxsize=4096)(count_tokens)

    @lru_cache(maxsize=16)
    def splitting(longest: int, shared: int) -> Callable[[str], list[str]]:
        return RecursiveCharacterTextSplitter(
            chunk_size=longest,
            chunk_overlap=shared,
            length_function=count,
            separators=["\n\n", "\n", ". ", "。", "！", "？", " ", "、", "，"],
            keep_separator="end",
        ).split_text

    def chunks(text: str, *, spare: int = 0) -> list[str]:
        longest = size - min(spare, size // 2)
        shared = min(overlap, longest // 2) if spare else overlap
        split = splitting(longest, shared)
        return [
            piece
            for block in _blocks(text)
            for chunk in split(block)
            for piece in ([chunk] if count(chunk) <= longest else _by_length(chunk, count_tokens, longest, shared))
        ]

    return chunks


def _blocks(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _BLOCK:
        ends = ((text.rfind(mark, start + _BLOCK // 2, start + _BLOCK), len(mark)) for mark in _BLOCK_ENDS)
        end = next((at + length for at, length in ends if at >= 0), start + _BLOCK)
        yield text[start:end]
        start = end
    yield text[start:]


def _by_length(text: str, count_tokens: CountTokens, size: int, overlap: int) -> Iterator[str]:
    """Cut a text into pieces of at most `size` tokens, or of one character where even that has more."""
    length = max(len(text) * size // count_tokens(text), 1)
    start = 0
    while start < len(text):
        taken = length
        while taken > 1 and count_tokens(text[start : start + taken]) > size:
            taken = max(taken * 9 // 10, 1)
        piece = text[start : start + taken].strip()
        if piece:
            yield piece
        if start + taken >= len(text):
            return
        start += max(taken - taken * overlap // size, 1)


def cut(
    text: str, marks: Sequence[Mark], chunks: Chunker, count_tokens: CountTokens, *, has_tables: bool = True
) -> list[Piece]:
    """Cut a text into passages, in their order. None goes on to another page, so that a citation's page is right.

    A passage that begins in the rows of a table carries their header, unless bars mean something else in the text.
    """
    starts = [mark.start for mark in marks]
    pieces: list[Piece] = []
    for begin, end in _pages(marks, len(text)):
        for at, chunk, header in _chunks(text[begin:end], chunks, count_tokens, has_tables=has_tables):
            start = begin + at
            within = marks[bisect_right(starts, start) : bisect_left(starts, start + len(chunk))]
            index = bisect_right(starts, start) - 1
            mark = marks[index] if index >= 0 else Mark(0)
            through = [mark.section, *(mark.section for mark in within)]
            passage = header + chunk
            pieces.append(Piece(passage, count_tokens(passage), mark.page, cited_section(through), _distinct(through)))
    return pieces


def _chunks(
    page: str, chunks: Chunker, count_tokens: CountTokens, *, has_tables: bool
) -> Iterator[tuple[int, str, str]]:
    """Yield the start of each chunk, its text, and the header of a table that it lacks."""
    found = list(_placed(page, chunks(page)))
    tables = TextTables(page if has_tables and len(found) > 1 else "")
    headers = {tables.header_for(at) for at, _ in found}
    if any(headers):
        # With its header, a passage is no longer than others.
        spare = max(map(count_tokens, headers)) + 1
        found = list(_placed(page, chunks(page, spare=spare)))
    for at, chunk in found:
        yield at, chunk, tables.header_for(at)


def _placed(page: str, chunks: Sequence[str]) -> Iterator[tuple[int, str]]:
    at = -1
    for chunk in chunks:
        # Neighbours overlap, so the next one begins anywhere behind the beginning of this one.
        found = page.find(chunk, at + 1)
        at = found if found >= 0 else at
        yield max(at, 0), chunk


def _distinct(sections: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, sections)))


def _pages(marks: Sequence[Mark], length: int) -> Iterator[tuple[int, int]]:
    """Return the start and end of each page, and of each part that is set apart; one page where there is neither."""
    turns = [mark.start for before, mark in pairwise([Mark(0), *marks]) if mark.page != before.page or mark.apart]
    return pairwise([0, *turns, length])
