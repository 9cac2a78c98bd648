"""Writes tables as text, row by row: "Header: value; Header: value".

Each row has a section, such as "Sheet > row 7".
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat

from cragside.adapters.documents.reading import MAX_CHARACTERS, Composer, Unreadable, label
from cragside.domain.tables import LOOKED_AT, header_of, side_by_side, stacked

# A spreadsheet has at most this many rows.
MAX_ROWS = 1_048_576
_MOST_TABLES = 1000
# Up to this many rows become passages of their own. In larger files, neighbouring rows share a passage.
ROWS_APART = 5000
# Each row repeats the headers, and cells may share or repeat a value, so that a small file can become a large text.
MOST_GROWTH = 100
_GROWS_FREELY = 1_000_000
_LONGEST_HEADER = 120
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
        if len(self._tables) == _MOST_TABLES:
            raise Unreadable(f"has more than {_MOST_TABLES:,} sheets, which is the limit: split it")
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
    """Each row that is not empty, with its number. Tables side by side have rows of their own."""
    for table in stacked(_filled(rows)):
        first = list(islice(table, LOOKED_AT))
        sides = [(side, _Writer(first, side)) for side in side_by_side(first)]
        for number, cells in chain(first, table):
            for side, writer in sides:
                if any(cells[side]) and (text := writer.text(number, cells[side])):
                    yield number, text


class _Writer:
    """Writes the rows of one table. Values follow their headers where there are any."""

    def __init__(self, first: Sequence[TableRow], side: slice) -> None:
        own = [(number, cells[side]) for number, cells in first if any(cells[side])]
        header = header_of(own)
        self._above = {number for number, _ in own[: header.at]}
        self._header = [number for number, _ in own[header.at : header.at + header.rows]]
        self._columns = "; ".join(dict.fromkeys(filter(None, header.names)))
        self._names = [label(name, _LONGEST_HEADER) for name in header.names]

    def text(self, number: int, cells: Sequence[str]) -> str:
        """The row with this number, "" for the second one of a header."""
        if number in self._above:
            return _plain(cells)
        if number in self._header:
            return f"Columns: {self._columns}" if number == self._header[0] else ""
        return _row(self._names, cells)


def _filled(rows: Iterable[TableRow]) -> Iterator[tuple[int, list[str]]]:
    """The rows with text, each value in one line."""
    for number, cells in rows:
        lines = [" ".join(cell.split()) for cell in cells]
        if any(lines):
            yield number, lines


def _row(headers: Sequence[str], cells: Sequence[str]) -> str:
    # The headers are not copied, because a hostile file has a million of them.
    named = zip(chain(headers, repeat("")), cells, strict=False)
    return "; ".join(f"{header}: {_value(cell)}" if header else cell for header, cell in named if cell)


def _value(cell: str) -> str:
    """The value of a cell, which cannot add a column of its own."""
    return _FURTHER_COLUMN.sub(",", cell)


def _plain(cells: Sequence[str]) -> str:
    """A title, or a name such as `Account:` and its value."""
    return "; ".join(dict.fromkeys(filter(None, cells))).replace(":; ", ": ")
