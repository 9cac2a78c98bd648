"""Reads workbooks of Excel row by row, XLSX and the XML of 2003. Runs in a child process."""

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple

from cragside.adapters.documents.number_formats import formula_shown, stated_number, value_shown
from cragside.adapters.documents.packages import check_archive, opened, parsed, transitional
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable, facts_of
from cragside.adapters.documents.tables import MAX_ROWS, Merged, MergedRow, TableRow, Tables, spread

NEEDED = frozenset({"[Content_Types].xml", "xl/workbook.xml"})
_WHAT = "an Excel workbook (.xlsx)"
_MOST_MERGED = 10_000
_PIECE = 1024 * 1024
_MERGED = re.compile(rb'<(?:\w{1,20}+:)?mergeCell ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
# The end of a cell with a formula that has no value, and a formula whose value is 0.
_UNCOMPUTED = re.compile(rb"(?:f|/)>\s{0,20}(?:<[\w:]{0,20}v(?: ?/|></[\w:]{0,20}v)>)?\s{0,20}</[\w:]{0,20}c>")
_ZERO = re.compile(rb"(?:f|/)>\s{0,20}<[\w:]{0,20}v>0</")
# Numbers of formats that have no text in the file, which openpyxl does not know.
_EAST_ASIAN_DATES = frozenset((*range(27, 37), *range(50, 59)))
# The number of the year 10000.
_LAST_DAY = 2_958_466
# How files write functions that are newer than their format.
_FUNCTION = re.compile(r"_xl(?:fn|ws|pm)\.")

# Merged cells by their first row.
_Merged = dict[int, list[Merged]]


class _Layout(NamedTuple):
    """The merged cells of a sheet, and whether it seems to have formulas without values."""

    merged: _Merged
    uncomputed: bool


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the visible sheets, with title, author and date. Raises `Unreadable` for damaged files and zip bombs."""
    size = check_archive(content, NEEDED, _WHAT)
    content = transitional(content, _WHAT)
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        formulas = cache(partial(load_workbook, io.BytesIO(content), read_only=True, keep_links=False))
        tables = Tables(size)
        with opened(content, _WHAT) as archive:
            for at, sheet in enumerate(book.worksheets):
                if sheet.sheet_state == "visible":
                    layout = _layout(archive, sheet._worksheet_path, unsure=book.calculation.fullCalcOnLoad)
                    other = formulas().worksheets[at] if layout.uncomputed else None
                    tables.add(sheet.title, _rows(sheet, other, layout.merged))
    except (InvalidFileException, KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError):
        raise Unreadable("is damaged, or not an Excel workbook") from None
    stated = book.properties
    author = stated.creator if stated.creator != "openpyxl" else None
    return tables.reading(facts_of(stated.title, author, stated.created.isoformat() if stated.created else None))


def _rows(sheet: Any, formulas: Any, merged: _Merged) -> Iterator[TableRow]:
    """Return the rows as people see them.

    `formulas` is the sheet with formulas in place of values, if some have none.
    """
    # A row may claim any number; openpyxl makes all rows before it.
    numbered = enumerate(_values(sheet, formulas), 1)
    return spread((number, cells, merged.pop(number, ())) for number, cells in numbered if cells)


def _values(sheet: Any, formulas: Any) -> Iterator[list[str]]:
    """Yield the values of each row, and formulas that have none."""
    # A sheet may claim a million rows and 16,384 columns that it does not have.
    sheet.reset_dimensions()
    if formulas is None:
        yield from (list(map(_shown, row)) for row in sheet.iter_rows(max_row=MAX_ROWS))
        return
    formulas.reset_dimensions()
    unsure = sheet.parent.calculation.fullCalcOnLoad
    for row, written in zip(sheet.iter_rows(max_row=MAX_ROWS), formulas.iter_rows(max_row=MAX_ROWS), strict=True):
        yield [
            _formula(other) if other.data_type == "f" and _is_uncomputed(cell, unsure=unsure) else _shown(cell)
            for cell, other in zip(row, written, strict=True)
        ]


def _is_uncomputed(cell: Any, *, unsure: bool) -> bool:
    """Tell if a formula has no value. In files that Excel is to compute when it opens them, 0 is none (`unsure`)."""
    if cell.value is None:
        return bool(cell.data_type != "str")  # a text may be empty
    return unsure and cell.data_type == "n" and bool(cell.value == 0)


def _formula(cell: Any) -> str:
    """Return the formula of a cell. That of an array is an object with a text."""
    formula = getattr(cell.value, "text", cell.value)
    return formula_shown(_FUNCTION.sub("", formula)) if isinstance(formula, str) else ""


def _layout(archive: zipfile.ZipFile, path: str, *, unsure: bool) -> _Layout:
    """Read what openpyxl's sheets for streaming do not tell."""
    from openpyxl.utils import column_index_from_string

    merged, uncomputed, count, before = _Merged(), False, 0, b""
    with archive.open(path) as stream:
        while piece := stream.read(_PIECE):
            seen = before + piece
            uncomputed = uncomputed or bool(_UNCOMPUTED.search(seen) or (unsure and _ZERO.search(seen)))
            for left, top, right, bottom in _MERGED.findall(seen):
                count += 1
                if count <= _MOST_MERGED:
                    columns = (column_index_from_string(left.decode()), column_index_from_string(right.decode()))
                    merged.setdefault(int(top), []).append((*columns, int(bottom)))
            before = piece[-100:]
    return _Layout(merged, uncomputed)


def _shown(cell: Any) -> str:
    value = cell.value
    if _is_number(value) and cell.style_array.numFmtId in _EAST_ASIAN_DATES and 0 <= value < _LAST_DAY:
        from openpyxl.utils.datetime import from_excel

        value = from_excel(value, cell.parent.parent.epoch)
    return "" if value is None else value_shown(value, cell.number_format or "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_S = "{urn:schemas-microsoft-com:office:spreadsheet}"
_X = "{urn:schemas-microsoft-com:office:excel}"
_OTHER = "is an Office file in XML, which is not read: save it as .docx, .xlsx or .pptx"
_DAY_0 = datetime(1899, 12, 31)
_DURATION = re.compile(r"\[[hms]{1,2}\]", re.IGNORECASE)
_MOST_COLUMNS = 16_384
_NAMED = {
    "Percent": "0.00%", "Fixed": "0.00", "Standard": "#,##0.00", "Short Time": "h:mm", "Medium Time": "h:mm AM/PM",
    "Long Time": "h:mm:ss", "Short Date": "yyyy-mm-dd", "General Date": "yyyy-mm-dd h:mm:ss",
}  # fmt: skip


def read_xml(content: bytes, origin: FileOrigin) -> Reading:
    """Return the visible sheets. Raises `Unreadable` for damaged files, and for those of other Office programs."""
    from lxml import etree

    try:
        book = parsed(content)
    except etree.XMLSyntaxError:
        raise Unreadable("is damaged, or no Excel workbook in XML: save it as .xlsx") from None
    if book.tag != f"{_S}Workbook":
        raise Unreadable(_OTHER)
    formats = {
        str(style.get(f"{_S}ID")): str(number.get(f"{_S}Format", ""))
        for style in book.iterfind(f"{_S}Styles/{_S}Style")
        for number in style.iterfind(f"{_S}NumberFormat")
    }
    tables = Tables(len(content))
    for sheet in book.iterfind(f"{_S}Worksheet"):
        if not sheet.findtext(f"{_X}WorksheetOptions/{_X}Visible", "").startswith("SheetHidden"):
            tables.add(sheet.get(f"{_S}Name", ""), spread(_xml_rows(sheet, formats)))
    return tables.reading()


def _xml_rows(sheet: Any, formats: dict[str, str]) -> Iterator[MergedRow]:
    number = 0
    for row in sheet.iterfind(f"{_S}Table/{_S}Row"):
        number = stated_number(row.get(f"{_S}Index", ""), number + 1)
        if number > MAX_ROWS:
            return
        cells, merged, width = list[str](), list[Merged](), 0
        for cell in row.iterfind(f"{_S}Cell"):
            column = stated_number(cell.get(f"{_S}Index", ""), width + 1)
            across, down = (stated_number(cell.get(f"{_S}Merge{way}", ""), 0) for way in ("Across", "Down"))
            width = column + across
            if not 0 < column <= _MOST_COLUMNS:
                break
            cells += [""] * (column - len(cells))
            cells[column - 1] = _xml_shown(cell, formats.get(cell.get(f"{_S}StyleID", ""), ""))
            if across or down:
                merged.append((column, width, number + down))
        yield number, cells, merged


def _xml_shown(cell: Any, written: str) -> str:
    data = cell.find(f"{_S}Data")
    text = "".join(data.itertext()).strip() if data is not None else ""
    kind, written = data.get(f"{_S}Type") if text else "", _NAMED.get(written, written)
    with suppress(ValueError):  # a value that is none of its type
        if kind == "Number":
            return value_shown(int(text) if text.isdecimal() and text.isascii() else float(text), written)
        if kind == "DateTime":
            moment = datetime.fromisoformat(text)
            return value_shown(moment - _DAY_0 if _DURATION.search(written) else moment, written)
        if kind == "Boolean":
            return value_shown(bool(int(text)), written)
    return text
