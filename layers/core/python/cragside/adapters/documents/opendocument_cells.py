"""Reads the rows and cells of OpenDocument tables, with the values that people see."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from cragside.adapters.documents.cell_values import formula_shown, moment_shown, number_shown
from cragside.adapters.documents.merged_cells import Merged, MergedRow
from cragside.adapters.documents.number_formats import stated_number
from cragside.adapters.documents.opendocument_text import OFFICE, TABLE, blocks, words
from cragside.adapters.documents.tables import MAX_ROWS

# A number as a power of ten, or in a column that is too narrow for it.
_SHORTENED = re.compile(r"-?\d[\d.,]{0,20}E[+-]?\d{1,3}|#{1,300}", re.IGNORECASE)
_LASTING = re.compile(r"PT(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,8})(?:[.,]\d{1,20})?S)?")
_REFERENCE = re.compile(r"\[\.?([^\[\]]{1,200})\]")
_MOST_REPEATED = 1000


def rows(table: Any) -> Iterator[MergedRow]:
    """The rows as people see them, with the merged cells. A row or cell is repeated at most 1,000 times."""
    number = 0
    for row in table.iter(f"{TABLE}table-row"):
        if next(row.iterancestors(f"{TABLE}table")) is not table:
            continue
        cells, merged = list[str](), list[Merged]()
        for cell in row.iterchildren(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
            columns, lines = _times(cell, "columns-spanned"), _times(cell, "rows-spanned")
            if columns > 1 or lines > 1:
                merged.append((len(cells) + 1, len(cells) + columns, number + lines))
            # A cell below a merged one may still have a text, which nobody sees.
            shown = "" if cell.tag == f"{TABLE}covered-table-cell" else _shown(cell)
            cells += [shown] * min(_times(cell, "columns-repeated"), _MOST_REPEATED)
        times = _times(row, "rows-repeated")
        for _ in range(min(times, _MOST_REPEATED) if any(cells) else 0):
            number += 1
            yield number, list(cells), merged
        number = min(number + (times - min(times, _MOST_REPEATED) if any(cells) else times), MAX_ROWS)


def _shown(cell: Any) -> str:
    """The text of a cell. Dates are written as 2024-03-31, and numbers are not shortened."""
    text = _cell_words(cell)
    with suppress(ValueError):  # what a damaged file says of its values
        if dated := cell.get(f"{OFFICE}date-value"):
            return moment_shown(datetime.fromisoformat(dated), "hh:mm:ss yyyy" if text.count(":") > 1 else "hh:mm yyyy")
        value = cell.get(f"{OFFICE}value", "")
        if value and (text in ("", value) or _SHORTENED.fullmatch(text)):
            is_share = cell.get(f"{OFFICE}value-type") == "percentage"
            return number_shown(float(value), "0.##%" if is_share else "General")
    if not text and (lasting := _LASTING.fullmatch(cell.get(f"{OFFICE}time-value", ""))):
        hours, minutes, seconds = (int(each or 0) for each in lasting.groups())
        return moment_shown(timedelta(hours=hours, minutes=minutes, seconds=seconds), "[h]:mm:ss")
    formula = cell.get(f"{TABLE}formula")
    # A string may be empty. Other values have a text.
    if formula and not text and cell.get(f"{OFFICE}value-type") != "string":
        # of:=SUM([.B2:.B4]) is =SUM(B2:B4).
        return formula_shown(_REFERENCE.sub(lambda each: each[1].replace(":.", ":"), formula[formula.find("=") :]))
    return text


def _cell_words(cell: Any) -> str:
    """The text of a cell in a line, also that of lists and tables in it. Cells in these count once."""
    texts = list[str]()
    for block in blocks(cell):
        if block.tag == f"{TABLE}table":
            inner = block.iter(f"{TABLE}table-cell")
            texts += [_cell_words(each) for each in inner if next(each.iterancestors(f"{TABLE}table")) is block]
        else:
            texts.append(words(block))
    return " ".join(filter(None, texts))


def _times(element: Any, what: str) -> int:
    return max(stated_number(element.get(f"{TABLE}number-{what}", ""), 1), 1)
