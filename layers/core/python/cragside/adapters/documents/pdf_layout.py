"""Reads where the text of a PDF page stands: its pieces, in the order in which the file draws them."""

import ctypes
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# pdfium writes the hyphen of a divided word as U+FFFE or U+0002.
DIVIDES = "\x02"
_DIVIDES_TOO = 0xFFFE
DIVIDED = re.compile(r"[\ufffe\x02]\s*+")
# A character takes 8 millionths of a second. The most of a real page is about 20,000.
_MOST_CHARACTERS = 2_000_000
_MOST_ON_A_PAGE = 60_000
# Of a page: a dense form has a thousand.
MOST_PIECES = 5000
# A gap wider than this, in heights of the line, ends a piece. Columns may be as near to each other as one height.
_GAP = 0.6
# The cosine of an angle of about eight degrees, as on scanned pages.
_UPRIGHT = 0.99
# The characters of blanks and boxes that are filled in.
_BLANKS = frozenset("_…☐□❏❑▢○◯")


class Box(NamedTuple):
    """A place on a page as it is shown: `top` is above `bottom`, in units of 1/72 inch."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        """Its height, at least a tenth of a unit."""
        return max(self.top - self.bottom, 0.1)

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left

    @property
    def middle(self) -> float:
        """Its middle between bottom and top."""
        return (self.bottom + self.top) / 2

    def beside(self, other: "Box") -> bool:
        """Tell if both stand in one line: they share at least half of the lower one's height."""
        shared = min(self.top, other.top) - max(self.bottom, other.bottom)
        return shared >= min(self.height, other.height) / 2

    def holds(self, other: "Box") -> bool:
        """Tell if the middle of the other box is in this one."""
        return self.left <= (other.left + other.right) / 2 <= self.right and self.bottom <= other.middle <= self.top

    def meets(self, other: "Box") -> bool:
        """Tell if both have a part in common."""
        return (
            self.left < other.right and self.right > other.left and self.bottom < other.top and self.top > other.bottom
        )

    def turned(self, degrees: int) -> "Box":
        """The box as a page shows it that is turned clockwise."""
        match degrees:
            case 90:
                return Box(self.bottom, -self.right, self.top, -self.left)
            case 180:
                return Box(-self.right, -self.top, -self.left, -self.bottom)
            case 270:
                return Box(-self.top, self.left, -self.bottom, self.right)
            case _:
                return self


@dataclass(slots=True)
class Piece:
    """Text without a wide gap. `before` separates it from the piece that the file draws before it."""

    text: str
    box: Box
    before: str
    blank: bool = False
    upright: bool = True
    changed: bool = False
    added: list[str] = field(default_factory=list)

    @property
    def shown(self) -> str:
        """The text with what was filled in behind it."""
        return " ".join((self.text, *self.added)) if self.text else " ".join(self.added)


class Layouts:
    """Finds the pieces of the pages of a file, until it has read as many characters as a file may take."""

    def __init__(self) -> None:
        self._left = _MOST_CHARACTERS

    def pieces(self, layer: Any, shown: Box, rotation: int) -> list[Piece]:
        """The pieces of a page's text layer that are in the shown part, none if it has too many."""
        count = layer.count_chars()
        if count > min(self._left, _MOST_ON_A_PAGE):
            return []
        self._left -= count
        made, letters, before = list[Piece](), list[str](), ""
        text, boxes = _characters(layer, count)
        for index, letter in enumerate(text):
            if letter in "\r\n":
                before = "\n"
            elif letter.isspace():
                before = before or " "
            elif boxes[index].meets(shown):
                box, blank = boxes[index].turned(rotation), _is_blank(text, index)
                if made and before != "\n" and made[-1].blank == blank and _near(made[-1].box, box):
                    letters += (before, letter)
                    made[-1].box = around((made[-1].box, box))
                else:
                    _end(made, letters)
                    made.append(Piece("", box, before if made else "", blank, _is_upright(layer, index, rotation)))
                    letters = [letter]
                # Nothing but the hyphen of a divided word tells that its line ends there.
                before = "\n" if letter == DIVIDES else ""
        _end(made, letters)
        return made if len(made) <= MOST_PIECES else []


def composed(ordered: Iterable[Piece]) -> str:
    """The text of pieces in this order, separated as they say."""
    text = list[str]()
    for piece in ordered:
        if shown := piece.shown:
            text += (piece.before, shown)
    return "".join(text)


def _end(made: Sequence[Piece], letters: Sequence[str]) -> None:
    if made:
        made[-1].text = "".join(letters)


def _characters(layer: Any, count: int) -> tuple[str, Sequence[Box]]:
    """Each character and its box, as high as the line's font."""
    import pypdfium2.raw as pdfium

    handle, rectangle = layer.raw, pdfium.FS_RECTF()
    at = ctypes.byref(rectangle)
    letters, boxes = list[str](), list[Box]()
    for index in range(count):
        code = pdfium.FPDFText_GetUnicode(handle, index)
        letters.append(DIVIDES if code == _DIVIDES_TOO else chr(code) if 0 < code <= sys.maxunicode else " ")
        pdfium.FPDFText_GetLooseCharBox(handle, index, at)
        boxes.append(Box(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top))
    return "".join(letters), boxes


def _is_upright(layer: Any, index: int, rotation: int) -> bool:
    import pypdfium2.raw as pdfium

    # In radians, clockwise, on the page as it is before it is turned.
    turned = pdfium.FPDFText_GetCharAngle(layer.raw, index) + math.radians(rotation)
    return math.cos(turned) > _UPRIGHT


def _is_blank(text: str, index: int) -> bool:
    return text[index] in _BLANKS or (
        text[index] == "." and "." in (text[index - 1 : index], text[index + 1 : index + 2])
    )


def _near(one: Box, other: Box) -> bool:
    gap = max(other.left - one.right, one.left - other.right)
    return one.beside(other) and gap <= _GAP * max(one.height, other.height)


def around(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds them."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))
