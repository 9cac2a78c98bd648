"""Where the passages of a document stand in its text."""

from collections.abc import Sequence

from cragside.domain.document import SourceText
from cragside.domain.indexing import Passage

# What is left out between two passages is shorter. Without a limit, a carried header would be looked for in all text.
_FARTHEST = 10_000
# The lines of a header.
_MOST_CARRIED = 3


def place_of(passage: Passage, passages: Sequence[Passage], source: SourceText) -> tuple[int, int] | None:
    """The offsets of a passage in the text of its document, None if it is not there.

    `passages` are all of the document in their order. A text may have the same lines several times. So each passage is
    looked for after the beginning of the one before it, and on its own page.
    """
    pages: dict[int | None, int] = {}
    for mark in source.marks:
        pages.setdefault(mark.page, mark.start)
    at, reach = -1, 0
    for each in passages:
        begin = max(at + 1, 0 if each.page is None else pages.get(each.page, 0))
        reach += len(each.text) + _FARTHEST
        found, length = _found(source.text, each.text, begin, begin + reach)
        at, reach = (found, length) if found >= 0 else (at, reach)
        if each.id == passage.id:
            return None if found < 0 else (found, found + length)
    return None


def _found(text: str, passage: str, begin: int, near: int) -> tuple[int, int]:
    """The start of a passage in the text, and its length without the header of a table that it carries."""
    kept = passage
    for _ in range(_MOST_CARRIED + 1):
        if kept and (found := text.find(kept, begin, near)) >= 0:
            return found, len(kept)
        kept = kept.partition("\n")[2]
    return text.find(passage, begin), len(passage)
