"""Cutting texts into passages that know where they stand."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from langchain_text_splitters import RecursiveCharacterTextSplitter

from cragside.domain.context import CountTokens
from cragside.domain.document import Mark

# Neither XML nor UTF-8 can hold these. One blank for each keeps the offsets of all marks.
_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

Chunker = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage in the making: its tokens, and the page and the section in which it begins."""

    text: str
    tokens: int
    page: int | None
    section: str


def chunker(count_tokens: CountTokens, size: int, overlap: int) -> Chunker:
    """LangChain's recursive splitter: paragraphs, lines, sentences, words, letters."""
    return RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        length_function=count_tokens,
        separators=["\n\n", "\n", ". ", "。", "！", "？", " ", "、", "，", ""],
        keep_separator="end",
    ).split_text


def storable(text: str) -> str:
    """The text with a blank for each character that cannot be stored."""
    return _UNSTORABLE.sub(" ", text)


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
            index = bisect_right(starts, begin + max(at, 0)) - 1
            mark = marks[index] if index >= 0 else Mark(0)
            pieces.append(Piece(chunk, count_tokens(chunk), mark.page, mark.section))
    return pieces


def _pages(marks: Sequence[Mark], length: int) -> Iterator[tuple[int, int]]:
    """Where each page begins and ends; a text without pages is one."""
    turns = [mark.start for before, mark in pairwise([Mark(0), *marks]) if mark.page != before.page]
    return pairwise([0, *turns, length])
