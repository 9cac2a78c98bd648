"""Reduces passages to their relevant strips, as corrective RAG does (arXiv 2401.15884, section 4.4)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from cragside.domain.document import Document
from cragside.domain.reading import Reading
from cragside.ports.models import RelevanceGrader

GAP = " … "
# The least bytes of a strip (17 English words, 33 Chinese characters): a grader cannot judge shorter texts.
_SHORTEST_STRIP = 100
_MOST_STRIPS = 48
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]{0,2}\s+(?=\S)|(?<=[。！？])|\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)]))")
# A strip is kept if it has at least this share of the best score in its passage. The threshold was calibrated on longer
# texts, whose scores are higher, but scores of strips can be compared with each other.
_SHARE_OF_BEST = 0.3


def strips_of(text: str) -> list[str]:
    """The text as at most 48 runs of whole sentences, each of about 17 words or more."""
    return [text[start:end] for start, end in strip_places(text)]


def strip_places(text: str) -> list[tuple[int, int]]:
    """Where each strip of the text begins and ends, without the blanks around it."""
    least = max(_SHORTEST_STRIP, _size(text) // _MOST_STRIPS + 1)
    places: list[tuple[int, int]] = []
    start = begun = size = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        size += _size(text[begun:end])
        begun = end
        if size >= least:
            places.append(_trimmed(text, start, end))
            start, size = end, 0
    rest = _trimmed(text, start, len(text))
    if rest[0] == rest[1]:
        return places
    if places and size < least // 2:
        places[-1] = (places[-1][0], rest[1])
    else:
        places.append(rest)
    return places


async def compressed(reading: Reading, documents: Sequence[Document], grader: RelevanceGrader) -> list[Document]:
    """The documents with only their relevant strips, joined by ` … ` at gaps. Scores stay.

    Each keeps at least its best strip. One call of `grader` rates all strips, so the grader should be a cheap one. It
    gets no titles: they describe the whole passage and would make the scores of its strips alike.
    """
    split = [strips_of(document.content) for document in documents]
    pieces = [
        replace(document, id=f"{document.id}#{number}", content=strip, title="")
        for document, strips in zip(documents, split, strict=True)
        for number, strip in enumerate(strips)
        if len(strips) > 1
    ]
    scores = iter(await grader.grade_read(reading, pieces) if pieces else ())
    return [
        replace(document, content=_kept(strips, [next(scores) for _ in strips])) if len(strips) > 1 else document
        for document, strips in zip(documents, split, strict=True)
    ]


async def best_strips(question: str, document: Document, grader: RelevanceGrader, *, characters: int) -> Document:
    """The document with its best strips in their order, as many as have room in so many characters.

    A strip that is longer is cut.
    """
    if len(document.content) <= characters:
        return document
    strips = strips_of(document.content)
    scores = await grader.grade(question, [Document(str(n), strip, document.source) for n, strip in enumerate(strips)])
    best = sorted(range(len(strips)), key=lambda number: -scores[number])
    sizes = accumulate(len(strips[number]) for number in best)
    kept = [number for number, size in zip(best, sizes, strict=True) if size <= characters] or best[:1]
    return replace(document, content=_joined(strips, sorted(kept))[:characters])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of the text without the blanks at its ends."""
    part = text[start:end]
    begin = start + len(part) - len(part.lstrip())
    return begin, max(begin, start + len(part.rstrip()))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _kept(strips: Sequence[str], scores: Sequence[float]) -> str:
    bound = max(scores) * _SHARE_OF_BEST
    return _joined(strips, [number for number, score in enumerate(scores) if score >= bound])


def _joined(strips: Sequence[str], kept: Sequence[int]) -> str:
    text = strips[kept[0]]
    for before, number in pairwise(kept):
        text += ("\n" if number == before + 1 else GAP) + strips[number]
    return text
