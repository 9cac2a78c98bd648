"""Finds the columns and the merged cells of the rows of a Word table."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cragside.adapters.documents.merged_cells import Merged, MergedRow
from cragside.adapters.documents.word_numbering import W, value_of

# Word has at most 63 columns.
_COLUMNS = re.compile(r"[1-9]|[1-5]\d|6[0-3]")

# The element of a row, and its cells with their texts.
Row = tuple[Any, Sequence[tuple[Any, str]]]


def merged_rows(rows: Sequence[Row]) -> Iterator[MergedRow]:
    """Each row with its number and the merged cells that begin in it."""
    # A merged cell over several rows by its first column: where it stands in the list of its row.
    begun, result = dict[int, tuple[list[Merged], int]](), list[MergedRow]()
    for number, (row, cells) in enumerate(rows, 1):
        texts, merged = [""] * _stated(row, "trPr", "gridBefore", 0), list[Merged]()
        goes_on = dict[int, tuple[list[Merged], int]]()
        for cell, text in cells:
            column, width = len(texts) + 1, _stated(cell, "tcPr", "gridSpan", 1)
            kind = _vertical(cell)
            if kind == "continue" and column in begun:
                above, at = goes_on[column] = begun[column]
                above[at] = (*above[at][:2], number)
            elif kind == "restart" or width > 1:
                merged.append((column, column + width - 1, number))
                if kind == "restart":
                    goes_on[column] = merged, len(merged) - 1
            texts += ["" if kind == "continue" and column in begun else text, *[""] * (width - 1)]
        begun = goes_on
        result.append((number, texts, merged))
    yield from result


def _stated(element: Any, holder: str, name: str, otherwise: int) -> int:
    written = value_of(element, holder, name)
    return int(written) if _COLUMNS.fullmatch(written) else otherwise


def _vertical(cell: Any) -> str:
    """Tell if a cell begins a merged one over several rows (restart), or goes on with it (continue)."""
    stated = cell.find(f"{W}tcPr/{W}vMerge")
    return "" if stated is None else stated.get(f"{W}val", "continue")
