"""Tables in texts: their header, and their rows as parts."""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

# A preamble has at most about this many rows.
LOOKED_AT = 30
_MOST_ROWS = 3
_WIDEST = 200
# From this share of its values on, a column has their form.
_MOSTLY = 0.6
_SHORTEST_COUNT = 3

_YEAR = re.compile(r"(?:19|20)\d\d")
_DATE = re.compile(r"(?:\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d))(?:[ T]\d.{0,20})?")
_MONTH = re.compile(r"\d{1,2}[./-](?:19|20)\d\d|(?:19|20)\d\d[./-]\d{1,2}")
_NUMBER = re.compile("[-+−]?(?:\\d{1,3}(?:[.,'’ \u00a0\u202f]\\d{3}){1,8}|\\d{1,40})(?:[.,]\\d{1,40})?")
_AMOUNT = re.compile(r"\d{1,40}(?:[.,]\d{1,40}){0,8}")
_NOTHING = frozenset({"-", "–", "—", ".", "?", "/", "*", "+"})
_UNIT = re.compile(
    r"[\[(][^\])]{1,20}[\])]|(?:[cdkm]?m[²³23]?|k?g|t|[mhc]?l|min|s|h|[kM]?Wh?|V|A|Hz|bar|°[CF]|[%#]"
    r"|(?:[kT]|Mio\.? ?|Tsd\.? ?)?(?:[€$£]|EUR|USD|GBP|CHF))"
)

Row = tuple[int, Sequence[str]]


class Header(NamedTuple):
    """The header's place in the first rows, how many rows it has (0 if there is none), and the names of the columns."""

    at: int
    rows: int
    names: list[str]


def header_of(first: Sequence[Row]) -> Header:
    """Return the header in the first rows of a table, each with its number. Empty rows are left out."""
    rows = [_Row(number, list(cells)) for number, cells in first]
    at = _main_row(rows)
    if at is None:
        return Header(0, 0, [])
    begin = end = at
    while end - begin < _MOST_ROWS - 1 and begin and _stands_above(rows[begin - 1], rows[begin], rows[end + 1 :]):
        begin -= 1
    while end - begin < _MOST_ROWS - 1 and end + 1 < len(rows) and _goes_on(rows[end], rows[end + 1], rows[end + 2 :]):
        end += 1
    return Header(begin, end - begin + 1, joined_names([row.cells for row in rows[begin : end + 1]]))


def names_values(first: Sequence[Row], header: Header) -> bool:
    """Tell if a word of the header stands above numbers, dates and their like."""
    rows = [_Row(number, list(cells)) for number, cells in first]
    last = header.at + header.rows
    return bool(header.rows) and any(_differs(row, rows[last:]) for row in rows[header.at : last])


class _Row:
    """A row, with the form of each of its values."""

    def __init__(self, number: int, cells: list[str]) -> None:
        self.number = number
        self.cells = cells
        self.forms = [_form(cell) for cell in cells[:_WIDEST]]
        self.values = [cell for cell in cells if cell]

    @property
    def filled(self) -> int:
        return len(self.values)

    @property
    def is_pair(self) -> bool:
        """Tell if it is a name and its value, as `Account:` and `4711` above a table."""
        return self.filled > 1 and self.values[0].endswith(":") and not self.values[1].endswith(":")


def _form(cell: str) -> str:
    """Return the form of a value: word, sign, year, date, month, number, its text with 9 for each number, or ""."""
    if not cell or cell in _NOTHING:
        return ""
    if not any(map(str.isdigit, cell)):
        return "word" if any(map(str.isalpha, cell)) else "sign"
    for form, pattern in (("year", _YEAR), ("date", _DATE), ("month", _MONTH), ("number", _NUMBER)):
        if pattern.fullmatch(cell):
            return form
    # Names may have numbers, but do not begin with them.
    return "word" if cell[0].isalpha() else _AMOUNT.sub("9", cell[:200])


def _main_row(rows: Sequence[_Row]) -> int | None:
    """Find the first row that may be a header. One that differs more from its rows wins over words of a preamble."""
    likely, data = None, False
    for at, row in enumerate(rows[:-1]):
        below = rows[at + 1 :]
        if row.filled < 2 or row.is_pair:
            continue
        # A preamble and titles have fewer values than the table's rows.
        is_whole = row.filled >= sorted(each.filled for each in below)[-2:][0]
        if not _names(row, below):
            data = data or is_whole
            continue
        differs = is_whole and _differs(row, below)
        if likely is None and not data:
            if differs:
                return at
            likely = at
            continue
        above = [each.filled for each in rows[:at]]
        is_apart = row.number - rows[at - 1].number > 1
        if max(above) < row.filled and (differs or (is_apart and is_whole)):
            return at
        if differs and is_apart and max(above) <= 2:
            return at
    return likely


def _column(rows: Iterable[_Row], at: int) -> list[str]:
    """Return the forms of the values in a column."""
    return [row.forms[at] for row in rows if at < len(row.forms) and row.forms[at]]


def _names(row: _Row, below: Sequence[_Row]) -> bool:
    """Tell if all values of a row may be names of columns.

    Words and signs may. Numbers, dates and their like may if the values below look otherwise, and numbers that count or
    stand beside an empty corner.
    """
    if len(set(row.values)) < 2:
        return False
    # An empty corner stands above the names of rows.
    has_corner = not row.cells[0] and all(each.cells[0] for each in below) and bool(below)
    counts = has_corner or (_counts(row) and not (below and _counts(below[0])))
    for at, form in enumerate(row.forms):
        if row.cells[at] in _NOTHING or row.cells[at].startswith("="):
            return False
        if form in ("", "word", "sign") or (counts and form == "number"):
            continue
        column = _column(below, at)
        if column and column.count(form) >= _MOSTLY * len(column):
            return False
    return True


def _differs(row: _Row, below: Sequence[_Row]) -> bool:
    """Tell if a word or a sign stands above a column of numbers, dates and their like."""
    for at, form in enumerate(row.forms):
        column = _column(below, at)
        if form in ("word", "sign") and column and sum(each != "word" for each in column) >= _MOSTLY * len(column):
            return True
    return False


def _counts(row: _Row) -> bool:
    """Tell if the numbers of a row rise by equal steps, as days, hours and sizes do."""
    numbers = [
        int(cell) for cell, form in zip(row.cells, row.forms, strict=False) if form == "number" and cell.isdecimal()
    ]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(numbers) >= _SHORTEST_COUNT and len(steps) == 1 and min(steps) > 0


def _stands_above(upper: _Row, lower: _Row, below: Sequence[_Row]) -> bool:
    """Tell if a row has names for several columns of the header's row below it."""
    return upper.filled > 1 and not upper.is_pair and _names(upper, below) and _spans(upper.cells, lower.cells)


def _goes_on(upper: _Row, lower: _Row, below: Sequence[_Row]) -> bool:
    """Tell if the header has another row, with names below a name of several columns, or with units."""
    return _has_units(lower, below) or (_names(lower, below) and _spans(upper.cells, lower.cells))


def _has_units(row: _Row, below: Sequence[_Row]) -> bool:
    """Tell if all values of a row are units, such as kg or (%), above numbers."""
    columns = [_column(below, at) for at, form in enumerate(row.forms) if form]
    measured = bool(columns) and all(column.count("number") >= _MOSTLY * len(column) > 0 for column in columns)
    return measured and all(map(_UNIT.fullmatch, row.values))


def _spans(upper: Sequence[str], lower: Sequence[str]) -> bool:
    """Tell if a value of the upper row stands above several columns. Merged cells repeat it, or leave blanks."""
    width = min(max(len(upper), len(lower)), _WIDEST)
    above, under = _wide(upper, width), _wide(lower, width)
    pairs = list(zip(above, under, strict=True))
    for (value, name), (value_after, name_after) in pairwise(pairs):
        if value and value == value_after and name != name_after:
            return True
    filled = [at for at, value in enumerate(above) if value]
    has_blank = any(name and not value for value, name in pairs[filled[0] : filled[-1]]) if filled else False
    repeats = len(set(filter(None, under))) < len(list(filter(None, under)))
    return has_blank and (not above[0] or not under[0] or repeats)


def joined_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names of the columns. A name that stands for several ones comes first."""
    width = max(map(len, rows))
    names = _wide(rows[-1], width)
    for row in reversed(rows[:-1]):
        above, last = _wide(row, width), ""
        for at, (value, name) in enumerate(zip(above, names, strict=True)):
            last = value or last
            # Blanks behind a name belong to it where the rows below have names for them.
            upper = last if name else value
            names[at] = " ".join(filter(None, (upper, "" if name == upper else name)))
    return names


def _wide(cells: Sequence[str], width: int) -> list[str]:
    return [*cells[:width], *[""] * (width - len(cells))]


# Of a sheet. Rows that stand apart behind so many others belong to the table before them.
_MOST_LOOKED_AT = 1000
# Fewer columns are pairs of a name and its value.
_COLUMNS = 3
_FEWEST = 3


def stacked(rows: Iterator[Row]) -> Iterator[Iterator[Row]]:
    """Yield the tables that stand below each other. Each has to be read before the next one is asked for."""
    ahead, looks = deque[Row](), [0]
    while ahead or (ahead := deque(islice(rows, 1))):
        yield _table(rows, ahead, looks)


def side_by_side(first: Sequence[Row]) -> list[slice]:
    """Return the columns of each of the tables that stand side by side. It is one table if one part has no header."""
    width = max((len(cells) for _, cells in first), default=0)
    filled = [False] * width
    for _, cells in first:
        for at, cell in enumerate(cells):
            filled[at] = filled[at] or bool(cell)
    begins = [at for at in range(width) if filled[at] and (at == 0 or not filled[at - 1])]
    if len(begins) < 2:
        return [slice(0, None)]
    sides = [slice(begin, end) for begin, end in zip([0, *begins[1:]], [*begins[1:], None], strict=True)]
    parts = [[(number, cells[side]) for number, cells in first if any(cells[side])] for side in sides]
    return sides if all(_is_table(part, 1) for part in parts) else [slice(0, None)]


def _table(rows: Iterator[Row], ahead: deque[Row], looks: list[int]) -> Iterator[Row]:
    """Yield the rows of a table, until another one begins, whose rows are left in `ahead`."""
    above = list[Row]()
    last = ahead[0][0]
    while True:
        ahead.extend(islice(rows, LOOKED_AT - len(ahead)))
        if not ahead:
            return
        number = ahead[0][0]
        if number - last > 1 and looks[0] < _MOST_LOOKED_AT:
            looks[0] += 1
            if _begins(_block(ahead), above):
                return
        if len(above) < LOOKED_AT:
            above.append(ahead[0])
        last = number
        yield ahead.popleft()


def _block(ahead: deque[Row]) -> list[Row]:
    """Return the rows up to the next blank one."""
    start = ahead[0][0]
    return [row for _, row in takewhile(lambda each: each[1][0] == start + each[0], enumerate(ahead))]


def _begins(block: Sequence[Row], above: Sequence[Row]) -> bool:
    """Tell if the rows of a block are a table of their own, below another table."""
    columns = max(map(_filled, above))
    is_preamble = columns < _COLUMNS and not _is_table(above, 1)
    if is_preamble or not header_of(above).rows:
        return False
    return _is_table(block, 1 if max(map(_filled, block)) >= _COLUMNS else 2) or _is_grid(block, columns)


def _is_table(rows: Sequence[Row], least: int) -> bool:
    """Tell if rows have a header of words above other values, and at least so many rows below it."""
    header = header_of(rows)
    below = rows[header.at + header.rows :]
    return header.rows > 0 and len(below) >= least and names_values(rows, header)


def _is_grid(rows: Sequence[Row], columns: int) -> bool:
    """Tell if rows are as wide as their header, but not as the table above them."""
    header = header_of(rows)
    widths = {_filled(row) for row in rows[header.at :]}
    return header.rows > 0 and len(rows) - header.at >= _FEWEST and len(widths) == 1 and widths.isdisjoint({1, columns})


def _filled(row: Row) -> int:
    return sum(map(bool, row[1]))


# A longer header would leave too little of a passage to its rows.
MOST_CARRIED = 1000
# Lines with bars, and those between the rows of a grid: +---+---+.
_LINES = re.compile(r"^(?:(?:[^\n|]*+\||\+[-=+]{3})[^\n]*+(?:\n|\Z)){3,}+", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
# The line that Markdown and Org write below a header.
_RULE = re.compile(r"[ \t]{0,10}\|?(?:[ \t]{0,200}:?-{1,200}:?[ \t]{0,200}(?:[|+]|$)){1,200}")


class TextTables:
    """The tables of a text: three lines with bars or more, outside of code fences."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = [found.span() for found in _LINES.finditer(text)] if "|" in text else []
        self._starts = [start for start, _ in self._spans]
        self._fences = [found.start() for found in _FENCE.finditer(text)] if self._spans else []
        self._headers = dict[int, tuple[int, int]]()

    def header_for(self, position: int) -> str:
        """The lines of the header above a position in the rows of a table, with their ends. "" if there are none."""
        index = bisect_left(self._starts, position) - 1
        if index < 0 or position >= self._spans[index][1]:
            return ""
        if index not in self._headers:
            self._headers[index] = self._header(*self._spans[index])
        start, end = self._headers[index]
        return self._text[start : min(end, position)]

    def _header(self, start: int, end: int) -> tuple[int, int]:
        """Find the offsets of a table's header."""
        if bisect_right(self._fences, start) % 2:
            return start, start
        lines = self._text[start : min(end, start + LOOKED_AT * MOST_CARRIED)].splitlines(keepends=True)[:LOOKED_AT]
        if _RULE.fullmatch(lines[1].rstrip()):
            first, last = 0, 2
        else:
            header = header_of([(number, _cells(line)) for number, line in enumerate(lines)])
            first, last = header.at, header.at + header.rows
        start += sum(map(len, lines[:first]))
        length = sum(map(len, lines[first:last]))
        says_something = any(map(str.isalnum, "".join(lines[first:last])))
        return start, start + length if says_something and length <= MOST_CARRIED else start


def _cells(line: str) -> list[str]:
    line = line.strip()
    # Markdown writes bars around a row. A single one at the beginning is behind an empty cell.
    inner = line[1:-1] if line.startswith("|") and line.endswith("|") else line
    return [" ".join(cell.split()) for cell in inner.split("|")]
