"""Reads XLSX row by row, with the values that were last computed. Runs in a child process.

Formulas and macros never run. Numbers have the decimals, the per cent sign and the unit that people see.
Dates are written as 2024-03-31.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any

from cragside.adapters.documents.archives import check_archive, opened
from cragside.adapters.documents.packages import transitional
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable, present
from cragside.adapters.documents.tables import MAX_ROWS, TableRow, Tables

NEEDED = frozenset({"[Content_Types].xml", "xl/workbook.xml"})
MAX_SHEETS = 1000
_WHAT = "an Excel workbook (.xlsx)"
_MOST_MERGED = 10_000
_WIDEST_MERGED = 100
# Cells that merged ones fill, in all: overlapping merges may fill the same ones again and again.
_MOST_FILLED = 2_000_000
_PIECE = 1024 * 1024
_MERGED = re.compile(rb'<(?:\w{1,20}+:)?mergeCell ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
# What stands for a number in a format: 0.00, #,##0, 0%.
_DIGITS = re.compile(r"[#0?][#0?,.]*+")
# What people do not see of a format: conditions, colours, widths and padding.
_UNSEEN = re.compile(r'\[\$([^\]-]{0,20})[^\]]{0,40}\]|\[[^\]]{0,60}\]|_.|\*.|\\(.)|"([^"]{0,100})"')


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The visible sheets, with title, author and date. Raises `Unreadable` for damaged files and zip bombs."""
    size = check_archive(content, NEEDED, _WHAT)
    content = transitional(content, _WHAT)
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        if len(book.worksheets) > MAX_SHEETS:
            raise Unreadable(f"has {len(book.worksheets):,} sheets, the limit is {MAX_SHEETS:,}: split it")
        tables, composer = Tables(size), Composer()
        with opened(content, _WHAT) as archive:
            for sheet in book.worksheets:
                if sheet.sheet_state == "visible":
                    tables.add(sheet.title, _rows(sheet, archive))
    except (InvalidFileException, KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError):
        raise Unreadable("is damaged, or not an Excel workbook") from None
    tables.compose(composer)
    stated = book.properties
    fields = present(
        {
            "title": stated.title,
            "author": stated.creator if stated.creator != "openpyxl" else None,
            "createdDate": stated.created.isoformat() if stated.created else None,
        }
    )
    return Reading(composer.text, title=fields.get("title", ""), marks=composer.marks, tier1=fields)


def _rows(sheet: Any, archive: zipfile.ZipFile) -> Iterator[TableRow]:
    """The rows as people see them. The value of merged cells stands in each of them."""
    # openpyxl's sheets for streaming do not tell which cells are merged.
    merged = _merged(archive, sheet._worksheet_path)
    # A sheet may claim a million rows and 16,384 columns that it does not have.
    sheet.reset_dimensions()
    active, filled = list[tuple[int, int, int, str]](), 0
    # A row may claim any number; openpyxl makes all rows before it.
    for number, row in enumerate(sheet.iter_rows(max_row=MAX_ROWS), 1):
        if not row:
            continue
        active = [each for each in active if each[0] >= number]
        filled += sum(min(right - left + 1, _WIDEST_MERGED) for _, left, right, _ in active)
        if filled > _MOST_FILLED:
            raise Unreadable(f"fills more than {_MOST_FILLED:,} cells by merging, which is the limit: split it")
        cells = [_shown(cell) for cell in row]
        for left, right, last in merged.pop(number, ()):
            if left <= len(cells) and cells[left - 1]:
                active.append((last, left, right, cells[left - 1]))
        for _, left, right, value in active:
            # A merge may claim all columns.
            cells += [""] * (min(right, left + _WIDEST_MERGED) - len(cells))
            for column in range(left - 1, min(right, len(cells))):
                cells[column] = cells[column] or value
        yield number, cells


def _merged(archive: zipfile.ZipFile, path: str) -> dict[int, list[tuple[int, int, int]]]:
    """First and last column and last row of merged cells, by their first row."""
    from openpyxl.utils import column_index_from_string

    found, count, before = dict[int, list[tuple[int, int, int]]](), 0, b""
    with archive.open(path) as stream:
        while piece := stream.read(_PIECE):
            for left, top, right, bottom in _MERGED.findall(before + piece):
                count += 1
                if count <= _MOST_MERGED:
                    columns = (column_index_from_string(left.decode()), column_index_from_string(right.decode()))
                    found.setdefault(int(top), []).append((*columns, int(bottom)))
            before = piece[-100:]
    return found


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return number_shown(value, cell.number_format or "General")
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date):
        return value.isoformat()
    return value.isoformat("minutes") if isinstance(value, time) else str(value)


def number_shown(value: float, written: str) -> str:
    """A number in a format such as `0.00%`. Thousands are not separated, because that differs between languages."""
    before, decimals, width, after = _format(written)
    if decimals is None:
        return f"{value:.11g}" if isinstance(value, float) else str(value)
    scaled = value * 100 if "%" in after else value
    sign, digits = "-" if scaled < 0 else "", f"{abs(scaled):.{decimals}f}"
    return f"{sign}{before}{digits.zfill(width)}{after}".strip()


@lru_cache(maxsize=1024)
def _format(written: str) -> tuple[str, int | None, int, str]:
    """What stands before and after a number, its decimals (None if unknown), and the least number of its digits."""
    seen = _UNSEEN.sub(lambda each: each[1] or each[2] or each[3] or " ", written[:300].split(";")[0])
    digits = _DIGITS.search(seen)
    if digits is None or written == "General" or re.search(r"[0#?]\s*/|E[+-]|@", written):
        return "", None, 0, ""
    whole, _, fraction = digits[0].partition(".")
    decimals = len(fraction.rstrip(","))
    zeros = len(whole) if whole == "0" * len(whole) and not fraction else 0
    if whole.endswith(","):  # in thousands or millions, which would be another number
        return "", None, 0, ""
    before, after = seen[: digits.start()], seen[digits.end() :]
    return " ".join(before.split()) and before.lstrip(), decimals, zeros, after.rstrip()
