"""Writes the rows of a table among text: cells between bars, with one row for the names of columns."""

from collections.abc import Iterable, Iterator

from cragside.adapters.documents.merged_cells import MergedRow, spread
from cragside.domain.tables import LOOKED_AT, header_of

# A longer text is no value, so it stands once.
LONGEST_VALUE = 200


def barred(rows: Iterable[MergedRow]) -> Iterator[str]:
    """The rows that are not empty, each given with the merged cells that begin in it."""
    filled = [cells for _, cells in spread(_with_values(rows)) if any(cells)]
    header = header_of([*enumerate(filled[:LOOKED_AT], 1)])
    if header.rows > 1:
        filled[header.at : header.at + header.rows] = [header.names]
    return (" | ".join(cells) for cells in filled)


def _with_values(rows: Iterable[MergedRow]) -> Iterator[MergedRow]:
    for number, cells, merged in rows:
        lines = [" ".join(cell.split()) for cell in cells]
        yield number, lines, [each for each in merged if len("".join(lines[each[0] - 1 : each[0]])) <= LONGEST_VALUE]
