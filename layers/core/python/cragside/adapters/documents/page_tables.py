"""Gives the tables of a page plain rows: one row with the names of columns, and a cell for each value.

A merged cell counts in each of its rows and columns, as in a spreadsheet. A table in a cell follows the cell's row.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from cragside.adapters.documents.inline_text import CELLS, INLINE, UNSEEN
from cragside.adapters.documents.tables import LONGEST_VALUE, Merged, spread
from cragside.domain.tables import LOOKED_AT, header_of, joined_names

# HTML's own limits.
_MOST_COLUMNS = 1000
_MOST_LINES = 65_534
# What merged cells may add to a table, in characters, for each character and cell that it has.
_MOST_ADDED = 4
_ADDS_FREELY = 20_000
_LONGEST_CELL = 1000
_MOST_NAMING = 5
_HEADINGS = tuple(f"h{level}" for level in range(1, 7))


class _Cell(NamedTuple):
    element: Any
    text: str


class _Row(NamedTuple):
    """A row with the number of the last one in its part of the table: `thead`, `tbody` or `tfoot`."""

    element: Any
    cells: list[_Cell]
    last: int


def settle_tables(tree: Any) -> None:
    """Write the tables of a page anew, in place. Tables for the layout become plain elements."""
    tables = list(tree.iter("table"))
    around = [next(table.iterancestors("table"), None) for table in tables]
    holders = {table for table in around if table is not None}
    # Those that hold others which hold others lay out a page.
    outer = {above for table, above in zip(tables, around, strict=True) if above is not None and table in holders}
    # Inner tables first.
    for table in reversed(tables):
        parts = _parts(table)
        if table in outer or _is_laid_out(parts):
            _unwrap(table, parts)
        else:
            _settle(table, parts)
            if table in holders:
                _part_inner(table)


def _parts(table: Any) -> list[list[Any]]:
    """Return the rows of a table, by the part in which they stand."""
    parts: list[list[Any]] = [[]]
    for child in table:
        if child.tag == "tr":
            parts[-1].append(child)
        elif child.tag in ("thead", "tbody", "tfoot"):
            parts += ([*child.iterchildren("tr")], [])
    return [part for part in parts if part]


def _is_laid_out(parts: Sequence[Sequence[Any]]) -> bool:
    """Tell if a table is there for the layout alone: it has one column, or headings or long texts in its cells."""
    rows = [[*row.iterchildren(*CELLS)] for part in parts for row in part]
    if not rows or _names_columns(rows[0]):
        return False
    if max(map(len, rows)) < 2:
        return True
    return any(
        len(_said(cell)) > _LONGEST_CELL or next(cell.iter(*_HEADINGS), None) is not None
        for cells in rows
        for cell in cells
    )


def _names_columns(cells: Sequence[Any]) -> bool:
    """Tell if the page calls all cells of a row names of columns. An empty corner is none."""
    return {cell.tag for cell in cells if cell.tag == "th" or _said(cell)} == {"th"}


def _unwrap(table: Any, parts: Sequence[Sequence[Any]]) -> None:
    for part in parts:
        for row in part:
            for each in (row, row.getparent(), *row.iterchildren(*CELLS)):
                each.tag = "div"
    table.tag = "div"


def _settle(table: Any, parts: Sequence[Sequence[Any]]) -> None:
    rows, number = list[_Row](), 0
    for part in parts:
        number += len(part)
        for row in part:
            rows.append(_Row(row, [_Cell(cell, _said(cell)) for cell in row.iterchildren(*CELLS)], number))
    placed = _placed(rows)
    naming = _naming(rows, placed)
    written = [cells for _, cells in spread((at + 1, cells, merged) for at, (cells, merged, _) in enumerate(placed))]
    begin, end = _names_of(written, naming)
    for at, (row, cells) in enumerate(zip(rows, written, strict=True)):
        if at < begin or at >= end or end - begin < 2:
            _write(row.element, cells, placed[at][2])
        elif at == begin:
            _name(row.element, joined_names(written[begin:end]))
        else:
            row.element.getparent().remove(row.element)


# The values of a row, the merged cells that begin in it, and its elements by their columns.
_Placed = tuple[list[str], list[Merged], dict[int, Any]]


def _placed(rows: Sequence[_Row]) -> list[_Placed]:
    """Return each row with empty cells where a cell of another row or column goes on."""
    cells = [cell for row in rows for cell in row.cells]
    left = _ADDS_FREELY + _MOST_ADDED * sum(len(cell.text) + 1 for cell in cells)
    taken, placed = dict[int, int](), list[_Placed]()
    for number, row in enumerate(rows, 1):
        column, texts, merged, elements = 0, list[str](), list[Merged](), dict[int, Any]()
        for cell in row.cells:
            while taken.get(column, 0) >= number:
                column += 1
            # A title needs no columns.
            columns = _span(cell.element, "colspan", _MOST_COLUMNS) if len(row.cells) > 1 else 1
            lines = min(_span(cell.element, "rowspan", _MOST_LINES), row.last - number + 1)
            added = (columns * lines - 1) * (len(cell.text) + 1)
            if added > left:
                columns, lines = 1, 1
            elif added:
                left -= added
            taken.update(dict.fromkeys(range(column, column + columns), number + lines - 1))
            if columns * lines > 1 and len(cell.text) <= LONGEST_VALUE:
                merged.append((column + 1, column + columns, number + lines - 1))
            texts += [""] * (column - len(texts)) + [cell.text]
            elements[column] = cell.element
            column += columns
        placed.append((texts, merged, elements))
    # A column in which no cell begins is none.
    widest = max((len(texts) for texts, _, _ in placed), default=0)
    return [
        (texts, [(first, min(end, widest), line) for first, end, line in merged], elements)
        for texts, merged, elements in placed
    ]


def _span(cell: Any, name: str, most: int) -> int:
    stated = (cell.attrib.pop(name, None) or "").strip()
    if not stated.isdecimal():
        return 1
    # A cell with `rowspan="0"` goes on to the end.
    return min(int(stated[:9]), most) or (most if name == "rowspan" else 1)


def _naming(rows: Sequence[_Row], placed: Sequence[_Placed]) -> int:
    """Return how many rows the page itself marks as names of columns, with rows that their merged cells reach into."""
    count = 0
    for row in rows[:LOOKED_AT]:
        in_head = row.element.getparent().tag == "thead"
        if row.cells and not in_head and not _names_columns([cell.element for cell in row.cells]):
            break
        count += 1
    return max((last for _, merged, _ in placed[:count] for _, _, last in merged), default=count) if count else 0


def _names_of(rows: Sequence[Sequence[str]], naming: int) -> tuple[int, int]:
    """Return the first row with names of columns, and the first one behind these rows. Titles stand above them."""
    if naming:
        begin = next((at for at, cells in enumerate(rows[:naming]) if sum(map(bool, cells)) > 1), naming)
        return (begin, naming) if naming - begin <= _MOST_NAMING and naming < len(rows) else (0, 0)
    filled = [(number, cells) for number, cells in enumerate(rows[:LOOKED_AT]) if any(cells)]
    header = header_of(filled)
    if not header.rows:
        return 0, 0
    return filled[header.at][0], filled[header.at + header.rows - 1][0] + 1


def _write(row: Any, cells: Sequence[str], elements: dict[int, Any]) -> None:
    """Add to a row the values of merged cells that go on in it."""
    tag = "th" if {each.tag for each in elements.values()} == {"th"} else "td"
    for column, text in enumerate(cells):
        if column not in elements:
            cell = elements[column] = row.makeelement(tag)
            cell.text = text
            if column:
                elements[column - 1].addnext(cell)
            else:
                row.insert(0, cell)


def _name(row: Any, names: Sequence[str]) -> None:
    row[:] = [row.makeelement("th") for _ in names]
    for cell, name in zip(row, names, strict=True):
        cell.text = name


def _part_inner(table: Any) -> None:
    """Put the tables in the cells of a row behind it. The rows below it become a table of their own."""
    last = under_way = table
    for row in [row for part in _parts(table) for row in part]:
        if under_way is None:
            under_way = table.makeelement("table")
            last.addnext(under_way)
            last = under_way
        if under_way is not table:
            under_way.append(row)
        for inner in list(row.iter("table")):
            gap = table.makeelement("br")
            gap.tail, inner.tail = inner.tail, None
            inner.getparent().replace(inner, gap)
            last.addnext(inner)
            last, under_way = inner, None


def drop_tables(tree: Any) -> None:
    """Take the tables out of a page, in place, and rows without a table."""
    for name in ("table", "tr"):
        for element in list(tree.iter(name)):
            if element.getparent() is not None:
                element.drop_tree()


def _said(cell: Any) -> str:
    """Return the text of a cell in a line, without tables in it."""
    pieces, stack = list[str](), [cell]
    while stack:
        element = stack.pop()
        if isinstance(element, str):
            pieces.append(element)
            continue
        around = "" if element.tag in INLINE else " "
        pieces.append(around)
        if isinstance(element.tag, str) and element.tag != "table" and element.tag not in UNSEEN:
            pieces.append(element.text or "")
            stack.append(around)
            for child in reversed(element):
                stack += (child.tail or "", child)
    return " ".join("".join(pieces).split())
