"""Reads the words of OpenDocument paragraphs, and the blocks that a part of a document has."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cragside.adapters.documents.links import end_link
from cragside.adapters.documents.number_formats import stated_number
from cragside.adapters.documents.raised import LEVEL, LOWERED, RAISED, leveled

SPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
TEXT, TABLE, DRAW, OFFICE, STYLE = (SPACE % name for name in ("text", "table", "drawing", "office", "style"))
TARGET = "{http://www.w3.org/1999/xlink}href"
# Comments, deleted text, and notes, which stand below their paragraph.
_GONE = frozenset({f"{OFFICE}annotation", f"{TEXT}tracked-changes", f"{TEXT}note", f"{TEXT}hidden-text"})
_MOST_SPACES = 100
# `super 58%`, `-20% 60%`: how far text is raised or lowered, and its size.
_SHIFTED = re.compile(r"(?:(super|[1-9])|sub|-[1-9])")


def blocks(container: Any) -> Iterator[Any]:
    """Headings, paragraphs and tables in their order, however deep they stand."""
    stack = list(reversed(container))
    while stack:
        element = stack.pop()
        if element.tag in (f"{TEXT}h", f"{TEXT}p", f"{TABLE}table"):
            yield element
        elif element.tag not in _GONE:
            stack.extend(reversed(element))


def words(block: Any) -> str:
    """The text of a paragraph with the addresses of links, without comments."""
    pieces: list[str] = []
    # A number is that of the piece with which a link begins, in front of its target.
    stack: list[Any] = [block]
    while stack:
        element = stack.pop()
        if isinstance(element, str):
            pieces.append(element)
            continue
        if isinstance(element, int):
            end_link(pieces, element, stack.pop())
            continue
        if element is not block and element.tail:
            stack.append(element.tail)
        if element.tag in _GONE or element.tag == f"{TABLE}table" or not isinstance(element.tag, str):
            continue
        if element.tag in (f"{TEXT}p", f"{TEXT}h") and element is not block:
            # In a text box.
            pieces.append("\n")
            stack.append("\n")
        if element.tag == f"{TEXT}a":
            stack += [element.get(TARGET, ""), len(pieces)]
        if element.tag == f"{TEXT}s":
            pieces.append(" " * min(stated_number(element.get(f"{TEXT}c", ""), 1), _MOST_SPACES))
        elif element.tag == f"{TEXT}tab":
            pieces.append("\t")
        elif element.tag == f"{TEXT}line-break":
            pieces.append("\n")
        stack.extend(reversed(element))
        if element.text:
            stack.append(element.text)
    return leveled("".join(pieces)).strip()


def mark_shifted(body: Any, styles: Sequence[Any]) -> None:
    """Mark, in place, the text that its style raises or lowers."""
    marks = dict[str, str]()
    # The styles of the content come first. They replace those of the same names for headers.
    for style in (each for root in reversed(styles) for each in root.iter(f"{STYLE}style")):
        stated = style.find(f"{STYLE}text-properties")
        shifted = _SHIFTED.match(stated.get(f"{STYLE}text-position", "")) if stated is not None else None
        marks[style.get(f"{STYLE}name", "")] = "" if shifted is None else RAISED if shifted[1] else LOWERED
    for span in body.iter(f"{TEXT}span"):
        if mark := marks.get(span.get(f"{TEXT}style-name", "")):
            span.text = mark + (span.text or "") + ("" if len(span) else LEVEL)
            if len(span):
                span[-1].tail = (span[-1].tail or "") + LEVEL
