"""Writes the value of merged cells in each of their rows and columns."""

from collections.abc import Iterable, Iterator, Sequence

from cragside.adapters.documents.reading import Unreadable
from cragside.adapters.documents.tables import TableRow

_WIDEST = 100
# Cells that merged ones fill, in all: overlapping merges may fill the same ones again and again.
_MOST_FILLED = 2_000_000

# The first and the last column of a merged cell, from 1, and its last row.
Merged = tuple[int, int, int]
# The number of a row, its cells, and the merged cells that begin in it.
MergedRow = tuple[int, list[str], Sequence[Merged]]


def spread(rows: Iterable[MergedRow]) -> Iterator[TableRow]:
    """The rows, each given with the merged cells that begin in it. Raises `Unreadable` if these fill too much."""
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
