"""Writes tables as text, row by row: "Header: value; Header: value".

Each row has a section, such as "Sheet > row 7".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from cragside.adapters.documents.reading import MAX_CHARACTERS, Composer, Unreadable, label

# A spreadsheet has at most this many rows.
MAX_ROWS = 1_048_576
# Up to this many rows become passages of their own. In larger files, neighbouring rows share a passage.
ROWS_APART = 5000
# Each row repeats the headers, and cells may share or repeat a value, so that a small file can become a large text.
MOST_GROWTH = 100
_GROWS_FREELY = 1_000_000
_LONGEST_HEADER = 120
_LOOKED_AT = 10
_YEAR = re.compile(r"(?:19|20)\d\d")
# In a value: what looks like the header of a further column.
_FURTHER_COLUMN = re.compile(r";(?=[^;:\n]{1,120}:)")
_NO_NAME = re.compile(r"(?:sheet|table|tabelle|blatt|feuille?|hoja|foglio|feuil) ?\d*$", re.IGNORECASE)

TableRow = tuple[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a sheet as text, each with its number from 1."""

    name: str
    rows: list[tuple[int, str]]


class Tables:
    """Collects the tables of a file of `size` unpacked bytes, within limits for all of them together."""

    def __init__(self, size: int) -> None:
        self._most = min(size * MOST_GROWTH + _GROWS_FREELY, MAX_CHARACTERS)
        self._tables: list[Table] = []
        self._rows = 0
        self._characters = 0

    def add(self, name: str, rows: Iterable[TableRow]) -> None:
        """Add a table. `name` is that of its sheet, or ""."""
        name = label(name, 120)
        begin = f"{name} – " if name and not _NO_NAME.match(name) else ""
        kept = list[tuple[int, str]]()
        for number, text in _written(rows):
            kept.append((number, begin + text))
            self._rows += 1
            self._characters += len(begin) + len(text)
            if self._rows > MAX_ROWS:
                raise Unreadable(f"has more than {MAX_ROWS:,} rows, which is the limit: split it")
            if self._characters > self._most:
                raise Unreadable(f"holds more than {self._most:,} characters with the headers of each row: split it")
        self._tables.append(Table(name, kept))

    def compose(self, composer: Composer) -> None:
        """Write all tables, with a section for each row, or for each group of rows in a large file."""
        together = max(-(-self._rows // ROWS_APART), 1)
        for table in self._tables:
            for start in range(0, len(table.rows), together):
                group = table.rows[start : start + together]
                first, last = group[0][0], group[-1][0]
                place = f"row {first}" if first == last else f"rows {first}–{last}"
                composer.mark(section=f"{table.name} > {place}" if table.name else place, apart=True)
                composer.add("\n".join(text for _, text in group))


def _written(rows: Iterable[TableRow]) -> Iterator[tuple[int, str]]:
    """Each row that is not empty, with its number. Values follow their headers where there are any."""
    filled = _filled(rows)
    first = [row for _, row in zip(range(_LOOKED_AT), filled, strict=False)]
    at, count, headers = _headers([cells for _, cells in first])
    for number, cells in first[:at]:
        yield number, _plain(cells)
    if count:
        yield first[at][0], "Columns: " + "; ".join(dict.fromkeys(filter(None, headers)))
    headers = [label(header, _LONGEST_HEADER) for header in headers]
    for number, cells in first[at + count :]:
        yield number, _row(headers, cells)
    for number, cells in filled:
        yield number, _row(headers, cells)


def _filled(rows: Iterable[TableRow]) -> Iterator[TableRow]:
    """The rows with text, each value in one line."""
    for number, cells in rows:
        lines = [" ".join(cell.split()) for cell in cells]
        if any(lines):
            yield number, lines


def _headers(rows: Sequence[Sequence[str]]) -> tuple[int, int, list[str]]:
    """The index of the first row of headers, the number of such rows (0 to 2), and the headers.

    Rows above, such as a title, have a single value.
    """
    for at, cells in enumerate(rows):
        if len(set(filter(None, cells))) < 2:
            continue
        below = rows[at + 1] if at + 1 < len(rows) else None
        if below is None or not _names(cells):
            break
        named = [cell for cell in cells if cell]
        # Merged cells repeat a header above a second row of headers.
        if len(set(named)) < len(named) and _names(below) and len(set(filter(None, below))) > 1:
            width = max(len(cells), len(below))
            pairs = zip(_wide(cells, width), _wide(below, width), strict=True)
            return at, 2, [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]
        return at, 1, list(cells)
    return 0, 0, []


def _names(cells: Sequence[str]) -> bool:
    """Whether all values of a row may be headers: words, or years."""
    return all(any(map(str.isalpha, cell)) or _YEAR.fullmatch(cell) for cell in cells if cell) and any(
        any(map(str.isalpha, cell)) for cell in cells
    )


def _wide(cells: Sequence[str], width: int) -> list[str]:
    return [*cells, *[""] * (width - len(cells))]


def _row(headers: Sequence[str], cells: Sequence[str]) -> str:
    if len(set(filter(None, cells))) == 1 and sum(map(bool, cells)) > 1:
        return _plain(cells)
    # The headers are not copied, because a hostile file has a million of them.
    named = zip(chain(headers, repeat("")), cells, strict=False)
    return "; ".join(f"{header}: {_value(cell)}" if header else cell for header, cell in named if cell)


def _value(cell: str) -> str:
    """The value of a cell, which cannot add a column of its own."""
    return _FURTHER_COLUMN.sub(",", cell)


def _plain(cells: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, cells)))
