"""Reads where the text of a PDF page stands, and brings its columns into reading order."""

import ctypes
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
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
        """Tell if the boxes overlap."""
        return (
            self.left < other.right and self.right > other.left and self.bottom < other.top and self.top > other.bottom
        )

    def turned(self, degrees: int) -> "Box":
        """Return the box as a page shows it that is turned clockwise."""
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
    """A text without a wide gap. `before` is the blank or line end between it and the piece that is drawn before it."""

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
    """Finds the pieces of text on the pages of a file, until the limit of characters for a file is reached."""

    def __init__(self) -> None:
        self._left = _MOST_CHARACTERS

    def pieces(self, layer: Any, shown: Box, rotation: int) -> list[Piece]:
        """Return the pieces of a page's text layer that are in the shown part, none if it has too many."""
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
    """Return the text of pieces in this order, separated as they say."""
    text = list[str]()
    for piece in ordered:
        if shown := piece.shown:
            text += (piece.before, shown)
    return "".join(text)


def _end(made: Sequence[Piece], letters: Sequence[str]) -> None:
    if made:
        made[-1].text = "".join(letters)


def _characters(layer: Any, count: int) -> tuple[str, Sequence[Box]]:
    """Return each character and its box, as high as the line's font."""
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
    """Return the smallest box that holds them."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


# Edges that are tried as the left edge of a column, the most frequent first.
_EDGES_TRIED = 4
_LEAST_LINES = 3
# A column of text has lines of so many letters, most of which fill it and begin in the middle of a sentence.
_LEAST_LETTERS = 12
_LEAST_WIDTH = 40.0  # 1/72 inch
_FILLED = 0.75
_MOST_LINES = 0.6
_CONTINUED = 0.4
_EVEN = 0.7
_CLOSE = 1.3
# A file that draws all lines across the columns changes the column with almost every piece.
_ACROSS = 0.6
# Columns are at least so far from each other, in heights of a line.
_GUTTER = 0.5
# The space between words, in heights of their letters, of which many have no ascender.
_WORDS_APART = 0.9
# Lines that are further from each other than so many usual steps stand apart.
_APART = 1.8

Row = list[Piece]
# The first row, the end, and the columns, each as lines.
_Band = tuple[int, int, list[list[Row]]]


def likely(layer: Any, rotation: int) -> bool:
    """Tell if the page may have columns, by the places of its runs of text.

    This takes a fraction of the time that the places of all characters take.
    """
    import pypdfium2.raw as pdfium

    left, top, right, bottom = sides = [ctypes.c_double() for _ in range(4)]
    ats = [ctypes.byref(side) for side in sides]
    runs = list[Piece]()
    for index in range(min(layer.count_rects(), MOST_PIECES)):
        pdfium.FPDFText_GetRect(layer.raw, index, *ats)
        box = Box(left.value, bottom.value, right.value, top.value).turned(rotation)
        if runs and runs[-1].box.beside(box) and 0 <= box.left - runs[-1].box.right <= _WORDS_APART * box.height:
            runs[-1].box = around((runs[-1].box, box))
        else:
            runs.append(Piece("", box, ""))
    rows = _rows(runs)
    return any(_may_be_columns(rows[start:end]) for start, end in _bands(rows))


def in_reading_order(pieces: Sequence[Piece], ruled: Callable[[Box], bool]) -> list[Piece] | None:
    """Return the pieces with one column after the other, None if their order is right already.

    Only columns of running text are put in order: rows of a table belong together. `ruled` says whether lines of a
    table are drawn across a place.
    """
    upright = [piece for piece in pieces if piece.upright]
    rows, found = _rows(upright), list[_Band]()
    for start, end in _bands(rows):
        overlaps = any(start < other_end and other_start < end for other_start, other_end, _ in found)
        if not overlaps and (columns := _columns(rows[start:end])):
            found.append((start, end, columns))
    drawn = {id(piece): number for number, piece in enumerate(pieces)}
    wrong = [
        band
        for band in found
        if _drawn_across(band[2], drawn) and not ruled(around([piece.box for piece in _flat(band[2])]))
    ]
    if not wrong:
        return None
    return [*_ordered(rows, sorted(wrong, key=lambda band: band[0]), drawn), *(p for p in pieces if not p.upright)]


def _bands(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Yield the runs of rows that may be columns."""
    for edge in _edges([piece.box.left for row in rows for piece in row]):
        for start, end in _free(rows, edge):
            if end - start >= _LEAST_LINES:
                yield start, end
                yield from _without_tables(rows, start, end, edge)


def _rows(pieces: Sequence[Piece]) -> list[Row]:
    """Return the lines of the page from top to bottom, each from left to right."""
    rows = list[Row]()
    for piece in sorted(pieces, key=lambda piece: -piece.box.middle):
        if rows and rows[-1][0].box.beside(piece.box):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    for row in rows:
        row.sort(key=lambda piece: piece.box.left)
    return rows


def _edges(lefts: Sequence[float]) -> list[float]:
    """Return the places where several pieces begin below each other, the most frequent first."""
    begun = dict[int, list[float]]()
    for left in lefts:
        begun.setdefault(round(left / 3), []).append(left)
    often = sorted((edges for edges in begun.values() if len(edges) >= _LEAST_LINES), key=len, reverse=True)
    inner = min(lefts, default=0) + _LEAST_WIDTH
    return [min(edges) for edges in often if min(edges) > inner][:_EDGES_TRIED]


def _free(rows: Sequence[Row], edge: float) -> list[tuple[int, int]]:
    """Return the runs of rows in which no text crosses the space left of the edge."""
    crossed = [
        any(piece.box.left < edge - 1 and piece.box.right > edge - _GUTTER * piece.box.height for piece in row)
        for row in rows
    ]
    runs, start = list[tuple[int, int]](), 0
    for number, blocked in enumerate([*crossed, True]):
        if blocked:
            if number - start >= _LEAST_LINES:
                runs.append(_without_margins(rows, start, number, edge))
            start = number + 1
    return runs


def _without_tables(rows: Sequence[Row], start: int, end: int, edge: float) -> Iterator[tuple[int, int]]:
    """Yield the parts of a run between rows that have a gap elsewhere than left of the edge."""
    begin = start
    for number in range(start, end + 1):
        has_gap = number < end and any(
            right.box.left - left.box.right > _WORDS_APART * left.box.height
            and (right.box.left < edge - 1 or left.box.left >= edge - 1)
            for left, right in pairwise(rows[number])
        )
        if number == end or has_gap:
            if number - begin >= _LEAST_LINES and (begin, number) != (start, end):
                yield begin, number
            begin = number + 1


def _without_margins(rows: Sequence[Row], start: int, end: int, edge: float) -> tuple[int, int]:
    """Return the run without a header and footer that stand apart, and without lines apart below the second column."""
    steps = _steps(rows[start:end])
    apart = [number for number, step in enumerate(steps, start + 1) if step > _APART * median(steps)]
    below = max((number for number in range(start, end) if rows[number][-1].box.left >= edge - 1), default=end)
    end = next((number for number in apart if number > below), end)
    if end - 1 in apart:
        end -= 1
    return (start + 1 if start + 1 in apart else start), end


def _gaps(rows: Sequence[Row]) -> list[float]:
    """Return where each column of these rows ends, except the last."""
    spans = sorted((piece.box.left, piece.box.right) for row in rows for piece in row)
    gutter = _GUTTER * median(piece.box.height for row in rows for piece in row)
    ends, reached = list[float](), spans[0][1]
    for left, right in spans:
        if left - reached >= gutter:
            ends.append(left - gutter / 2)
        reached = max(reached, right)
    return ends


def _split(rows: Sequence[Row], ends: Sequence[float]) -> list[list[Row]]:
    """Return the parts of these rows, each as lines."""
    parts: list[list[Row]] = [[] for _ in range(len(ends) + 1)]
    for row in rows:
        lines: list[Row] = [[] for _ in parts]
        for piece in row:
            lines[sum(piece.box.left > end for end in ends)].append(piece)
        for part, line in zip(parts, lines, strict=True):
            if line:
                part.append(line)
    return parts


def _is_wide(part: Sequence[Row]) -> bool:
    """Tell if a part is as long and as wide as a column."""
    return len(part) >= _LEAST_LINES and around([piece.box for piece in _flat([part])]).width >= _LEAST_WIDTH


def _may_be_columns(rows: Sequence[Row]) -> bool:
    return sum(map(_is_wide, _split(rows, _gaps(rows)))) > 1


def _columns(rows: Sequence[Row]) -> list[list[Row]]:
    """Find two or more columns of running text, and the small tables and figures beside them; [] without two."""
    ends = _gaps(rows)
    running = [_is_wide(part) and _runs_on(part) for part in _split(rows, ends)]
    if sum(running) < 2:
        return []
    # The columns of a small table belong together.
    kept = [end for end, beside in zip(ends, pairwise(running), strict=True) if any(beside)]
    columns = _split(rows, kept)
    others = [column for column in columns if not (_is_wide(column) and _runs_on(column))]
    return columns if all(_stands_beside(other, rows) for other in others) else []


def _stands_beside(part: Sequence[Row], rows: Sequence[Row]) -> bool:
    """Tell if a part is a small table or a figure of its own, and not a column of a table of texts: that has gaps."""
    if len(part) < _LEAST_LINES:
        return part[0][0] not in rows[0]
    return median(_steps(part)) <= _CLOSE * median(_steps(rows))


def _steps(lines: Sequence[Row]) -> list[float]:
    return [above[0].box.middle - below[0].box.middle for above, below in pairwise(lines)]


def _runs_on(column: Sequence[Row]) -> bool:
    """Tell if the lines are those of running text."""
    texts = [" ".join(piece.text for piece in line) for line in column]
    letters = sum(letter.isalpha() for text in texts for letter in text)
    if letters < _LEAST_LETTERS * len(texts) or letters < 0.6 * sum(len(text.replace(" ", "")) for text in texts):
        return False
    box = around([piece.box for line in column for piece in line])
    full = box.left + _FILLED * (box.right - box.left)
    filled = sum(line[-1].box.right >= full for line in column) / len(column)
    continued = sum(text[0].isalpha() and not text[0].isupper() for text in texts[1:]) / (len(texts) - 1)
    steps = _steps(column)
    even = sum(step <= _CLOSE * median(steps) for step in steps) / len(steps)
    return filled >= _MOST_LINES and continued >= _CONTINUED and even >= _EVEN


def _drawn_across(columns: Sequence[Sequence[Row]], drawn: dict[int, int]) -> bool:
    """Tell if the file draws the columns line by line, from one to the other, and not one after the other."""
    columns = [column for column in columns if _is_wide(column) and _runs_on(column)]
    owners = sorted((drawn[id(piece)], number) for number, column in enumerate(columns) for piece in _flat([column]))
    changes = sum(one != other for (_, one), (_, other) in pairwise(owners))
    return changes >= _ACROSS * len(columns) * min(map(len, columns))


def _ordered(rows: Sequence[Row], bands: Sequence[_Band], drawn: dict[int, int]) -> list[Piece]:
    """Return the rest of the page as the file draws it, and the columns between what stands above and below them."""
    ordered, done = list[Piece](), 0
    for start, end, columns in bands:
        ordered += _as_drawn(rows[done:start], drawn)
        for column in columns:
            for line in column:
                _join(line)
                ordered += line
        done = end
    rest = _as_drawn(rows[done:], drawn)
    if rest and done:
        rest[0].before = "\n"
    ordered += rest
    _undivide(ordered)
    return ordered


def _as_drawn(rows: Sequence[Row], drawn: dict[int, int]) -> list[Piece]:
    return sorted((piece for row in rows for piece in row), key=lambda piece: drawn[id(piece)])


def _join(line: Row) -> None:
    line[0].before = "\n"
    for piece in line[1:]:
        piece.before = piece.before if piece.before != "\n" else " "


def _undivide(ordered: Sequence[Piece]) -> None:
    """Mark the hyphens at ends of lines that divide words, which pdfium saw in the middle of its lines."""
    for piece, following in pairwise(ordered):
        if following.before != "\n":
            continue
        if piece.text.endswith(("-", "‐", "\xad")) and piece.text[-2:-1].isalpha() and following.text[:1].islower():
            piece.text = piece.text[:-1] + DIVIDES


def _flat(columns: Sequence[Sequence[Row]]) -> list[Piece]:
    return [piece for column in columns for line in column for piece in line]
