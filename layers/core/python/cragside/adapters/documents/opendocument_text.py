"""Reads the words of OpenDocument paragraphs, and the blocks that a part of a document has."""

from collections.abc import Iterator
from typing import Any

from cragside.adapters.documents.links import end_link
from cragside.adapters.documents.number_formats import stated_number

SPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
TEXT, TABLE, DRAW, OFFICE, STYLE = (SPACE % name for name in ("text", "table", "drawing", "office", "style"))
TARGET = "{http://www.w3.org/1999/xlink}href"
# Comments, deleted text, and notes, which stand below their paragraph.
_GONE = frozenset({f"{OFFICE}annotation", f"{TEXT}tracked-changes", f"{TEXT}note", f"{TEXT}hidden-text"})
_MOST_SPACES = 100


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
    return "".join(pieces).strip()
