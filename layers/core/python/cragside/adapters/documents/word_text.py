"""Writes the paragraphs and tables of a Word document as text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cragside.adapters.documents.word_numbering import Numbering, W, is_on

_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_GONE = frozenset({f"{W}{name}" for name in ("del", "moveFrom", "rPr", "pPr", "instrText")} | {_FALLBACK})


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph: its number, such as "2.2", and its text."""

    number: str
    text: str

    @property
    def numbered(self) -> str:
        """The text behind its number; "" without a text."""
        return f"{self.number} {self.text}" if self.number and self.text else self.text

    @property
    def whole(self) -> str:
        """The text that is read."""
        return self.numbered


class Texts:
    """Writes paragraphs and tables, which have to come in the order of the document."""

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering

    def paragraph(self, paragraph: Any) -> Paragraph:
        """The text of a paragraph with its number."""
        return Paragraph(self._numbering.number(paragraph), _text(paragraph).strip())

    def rows(self, table: Any) -> Iterator[str]:
        """A table's rows, cells separated by bars."""
        for row in table.iter(f"{W}tr"):
            if row.find(f"{W}trPr/{W}del") is not None or next(row.iterancestors(f"{W}tbl")) is not table:
                continue
            yield " | ".join(
                " ".join(" ".join(self.paragraph(each).whole for each in cell.iter(f"{W}p")).split())
                for cell in row.iter(f"{W}tc")
            )


def blocks(container: Any) -> Iterator[Any]:
    """Paragraphs and tables, also those in content controls and insertions."""
    for child in container:
        if child.tag in (f"{W}p", f"{W}tbl"):
            yield child
        elif child.tag == f"{W}sdt":
            for content in child.iterchildren(f"{W}sdtContent"):
                yield from blocks(content)
        elif child.tag in (f"{W}ins", f"{W}moveTo", f"{W}customXml"):
            yield from blocks(child)


def _text(paragraph: Any) -> str:
    """The text of a paragraph. Of shapes with two forms, the first counts."""
    pieces: list[str] = []
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        tag = element.tag
        if tag in _GONE or (tag == f"{W}r" and _hidden(element)):
            continue
        if tag == f"{W}t":
            pieces.append(element.text or "")
        elif tag in (f"{W}tab", f"{W}ptab") and element.getparent().tag == f"{W}r":
            pieces.append("\t")
        elif tag in (f"{W}br", f"{W}cr"):
            pieces.append("\n")
        elif tag == f"{W}noBreakHyphen":
            pieces.append("-")
        elif tag == f"{W}p":
            pieces.append("\n")
            stack.extend(reversed(element))
        else:
            stack.extend(reversed(element))
    return "".join(pieces)


def _hidden(run: Any) -> bool:
    """Whether a run is hidden, at most a point high, or white without a known background colour."""
    properties = run.find(f"{W}rPr")
    if properties is None:
        return False
    if is_on(properties, "vanish") or is_on(properties, "webHidden"):
        return True
    size, colour = properties.find(f"{W}sz"), properties.find(f"{W}color")
    if size is not None and size.get(f"{W}val", "") in ("0", "1", "2"):
        return True
    return colour is not None and colour.get(f"{W}val", "").lower() == "ffffff" and not _on_colour(run, properties)


def _on_colour(run: Any, properties: Any) -> bool:
    """Whether a run may have a background colour: its own, its paragraph's, a table's or a shape's."""
    if any(properties.find(f"{W}{name}") is not None for name in ("shd", "highlight")):
        return True
    for around in run.iterancestors(f"{W}p", f"{W}tbl", f"{W}txbxContent", f"{W}body"):
        if around.tag != f"{W}p":
            return bool(around.tag != f"{W}body")
        if around.find(f"{W}pPr/{W}shd") is not None or around.find(f"{W}pPr/{W}pStyle") is not None:
            return True
    return False
