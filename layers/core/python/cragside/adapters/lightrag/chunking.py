"""Cutting texts into passages that know where they stand."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from cragside.adapters.lightrag.ledger.entries import Piece
from cragside.domain.context import CountTokens
from cragside.domain.document import Mark, cited_section

# What is split at a time, in characters. LangChain takes a whole text apart before it puts passages together, and no
# call into C should keep other threads from running for long.
_BLOCK = 50_000
_BLOCK_ENDS = ("\n\n", "\n", ". ", " ")

Chunker = Callable[[str], list[str]]


def chunker(count_tokens: CountTokens, size: int, overlap: int) -> Chunker:
    """LangChain's recursive splitter: paragraphs, lines, sentences, words; what has no blanks is cut by its length.

    Neighbours share up to `overlap` tokens, but for those on either side of the end of a block of 50,000 characters at
    most, which is that of a paragraph, a line, a sentence or a word where there is one.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter  # loads langchain_core: 0.3 s, 65 MB

    # The splitter asks for the same pieces again and again.
    count = lru_cache(maxsize=4096)(count_tokens)
    split = RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        length_function=count,
        separators=["\n\n", "\n", ". ", "。", "！", "？", " ", "、", "，"],
        keep_separator="end",
    ).split_text

    def chunks(text: str) -> list[str]:
        return [
            piece
            for block in _blocks(text)
            for chunk in split(block)
            for piece in ([chunk] if count(chunk) <= size else _by_length(chunk, count_tokens, size, overlap))
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
    """Pieces of at most `size` tokens, or of one character where even that has more."""
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


def cut(text: str, marks: Sequence[Mark], chunks: Chunker, count_tokens: CountTokens) -> list[Piece]:
    """The text's passages, in their order. None goes on to another page, so that a citation's page is right."""
    starts = [mark.start for mark in marks]
    pieces: list[Piece] = []
    for begin, end in _pages(marks, len(text)):
        page, at = text[begin:end], -1
        for chunk in chunks(page):
            # Neighbours overlap, so the next one begins anywhere behind the beginning of this one.
            found = page.find(chunk, at + 1)
            at = found if found >= 0 else at
            start = begin + max(at, 0)
            within = marks[bisect_right(starts, start) : bisect_left(starts, start + len(chunk))]
            index = bisect_right(starts, start) - 1
            mark = marks[index] if index >= 0 else Mark(0)
            through = [mark.section, *(mark.section for mark in within)]
            pieces.append(Piece(chunk, count_tokens(chunk), mark.page, cited_section(through), _distinct(through)))
    return pieces


def _distinct(sections: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, sections)))


def _pages(marks: Sequence[Mark], length: int) -> Iterator[tuple[int, int]]:
    """The start and end of each page, and of each part that is set apart. A text without either is one page."""
    turns = [mark.start for before, mark in pairwise([Mark(0), *marks]) if mark.page != before.page or mark.apart]
    return pairwise([0, *turns, length])
