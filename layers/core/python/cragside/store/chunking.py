"""Cuts texts into passages that know where they stand."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from cragside.domain.context import CountTokens
from cragside.domain.document import Mark, cited_section
from cragside.domain.tables import TextTables
from cragside.store.ledger.entries import Piece

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
