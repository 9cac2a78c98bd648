"""Where the passages of a document stand in its text."""

from collections.abc import Sequence

from cragside.domain.document import SourceText
from cragside.domain.indexing import Passage


def place_of(passage: Passage, passages: Sequence[Passage], source: SourceText) -> tuple[int, int] | None:
    """The offsets of a passage in the text of its document, None if it is not there.

    `passages` are all of the document in their order. A text may have the same lines several times. So each passage is
    looked for after the beginning of the one before it, and on its own page.
    """
    pages: dict[int | None, int] = {}
    for mark in source.marks:
        pages.setdefault(mark.page, mark.start)
    at = -1
    for each in passages:
        begin = max(at + 1, 0 if each.page is None else pages.get(each.page, 0))
        found = source.text.find(each.text, begin)
        at = found if found >= 0 else at
        if each.id == passage.id:
            return None if found < 0 else (found, found + len(each.text))
    return None
