"""Writes tables as text, row by row, with the names of columns and merged cells."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any

from cragside.adapters.documents.reading import MAX_CHARACTERS, Composer, Reading, Unreadable, label
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


class Tables:
    """Collects the tables of a file of `size` unpacked bytes, within limits for all of them together."""

    def __init__(self, size: int) -> None:
        self._most = min(size * MOST_GROWTH + _GROWS_FREELY, MAX_CHARACTERS)
        # The names of tables, and their rows as text with their numbers from 1.
        self._tables: list[tuple[str, list[tuple[int, str]]]] = []
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
        self._tables.append((name, kept))

    def reading(self, facts: Mapping[str, Any] | None = None) -> Reading:
        """Return all tables, with a section for each row, or for each group of rows in a large file."""
        composer, together = Composer(), max(-(-self._rows // ROWS_APART), 1)
        for name, rows in self._tables:
            for start in range(0, len(rows), together):
                group = rows[start : start + together]
                first, last = group[0][0], group[-1][0]
                place = f"row {first}" if first == last else f"rows {first}–{last}"
                composer.mark(section=f"{name} > {place}" if name else place, apart=True)
                composer.add("\n".join(text for _, text in group))
        return composer.reading(facts)


def _written(rows: Iterable[TableRow]) -> Iterator[tuple[int, str]]:
    """Yield each row that is not empty, with its number. Tables side by side have rows of their own."""
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
        """Return the row with this number, "" for the second one of a header."""
        if number in self._above:
            return _plain(cells)
        if number in self._header:
            return f"Columns: {self._columns}" if number == self._header[0] else ""
        return _row(self._names, cells)


def _filled(rows: Iterable[TableRow]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with text, each value in one line."""
    for number, cells in rows:
        lines = [" ".join(cell.split()) for cell in cells]
        if any(lines):
            yield number, lines


def _row(headers: Sequence[str], cells: Sequence[str]) -> str:
    # The headers are not copied, because a hostile file has a million of them.
    named = zip(chain(headers, repeat("")), cells, strict=False)
    return "; ".join(f"{header}: {_value(cell)}" if header else cell for header, cell in named if cell)


def _value(cell: str) -> str:
    """Return a cell in which nothing looks like the beginning of another column."""
    return _FURTHER_COLUMN.sub(",", cell)


def _plain(cells: Sequence[str]) -> str:
    """Return a title, or a name such as `Account:` and its value."""
    return "; ".join(dict.fromkeys(filter(None, cells))).replace(":; ", ": ")


_WIDEST = 100
# Cells that merged ones fill, in all: overlapping merges may fill the same ones again and again.
_MOST_FILLED = 2_000_000

# The first and the last column of a merged cell, from 1, and its last row.
Merged = tuple[int, int, int]
# The number of a row, its cells, and the merged cells that begin in it.
MergedRow = tuple[int, list[str], Sequence[Merged]]


def spread(rows: Iterable[MergedRow]) -> Iterator[TableRow]:
    """Yield the rows, each given with the merged cells that begin in it. Raises `Unreadable` if these fill too much."""
    active, filled = list[tuple[int, int, int, str]](), 0
    for number, cells, merged in rows:
        active = [each for each in active if each[0] >= number]
        is_title = len(active) + sum(map(bool, cells)) == 1
        for left, right, last in merged:
            if left <= len(cells) and cells[left - 1]:
                active.append((last, left, right, cells[left - 1]))
        filled += sum(min(right - left + 1, _WIDEST) for _, left, right, _ in active)
        if filled > _MOST_FILLED:
            raise Unreadable(f"fills more than {_MOST_FILLED:,} cells by merging, which is the limit: split it")
        for _, left, right, value in active:
            # A title over all columns is no value of each of them, and a merge may claim all columns.
            right = left if is_title else min(right, left + _WIDEST)
            cells += [""] * (right - len(cells))
            for column in range(left - 1, right):
                cells[column] = cells[column] or value
        yield number, cells


# A longer text is no value, so it stands once.
LONGEST_VALUE = 200


def barred(rows: Iterable[MergedRow]) -> Iterator[str]:
    """Return the rows that are not empty, each given with the merged cells that begin in it."""
    filled = [cells for _, cells in spread(_with_values(rows)) if any(cells)]
    header = header_of([*enumerate(filled[:LOOKED_AT], 1)])
    if header.rows > 1:
        filled[header.at : header.at + header.rows] = [header.names]
    return (" | ".join(cells) for cells in filled)


def _with_values(rows: Iterable[MergedRow]) -> Iterator[MergedRow]:
    for number, cells, merged in rows:
        lines = [" ".join(cell.split()) for cell in cells]
        yield number, lines, [each for each in merged if len("".join(lines[each[0] - 1 : each[0]])) <= LONGEST_VALUE]
