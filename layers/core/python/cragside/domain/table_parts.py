"""Finds the tables of a sheet that stand below each other or side by side, apart by blank rows or columns."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from cragside.domain.table_header import LOOKED_AT, Row, header_of, names_values

# Of a sheet. Rows that stand apart behind so many others belong to the table before them.
_MOST_LOOKED_AT = 1000
# Fewer columns are pairs of a name and its value.
_COLUMNS = 3
_FEWEST = 3


def stacked(rows: Iterator[Row]) -> Iterator[Iterator[Row]]:
    """The tables that stand below each other. Each has to be read before the next one is asked for."""
    ahead, looks = deque[Row](), [0]
    while ahead or (ahead := deque(islice(rows, 1))):
        yield _table(rows, ahead, looks)


def side_by_side(first: Sequence[Row]) -> list[slice]:
    """The columns of each of the tables whose first rows these are. It is one table if one part has no header."""
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
    """The rows until another table begins, which stay `ahead`."""
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
    """The rows up to the next blank one."""
    start = ahead[0][0]
    return [row for _, row in takewhile(lambda each: each[1][0] == start + each[0], enumerate(ahead))]


def _begins(block: Sequence[Row], above: Sequence[Row]) -> bool:
    """Tell if rows that stand apart are a table of their own, and those above them are another."""
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
