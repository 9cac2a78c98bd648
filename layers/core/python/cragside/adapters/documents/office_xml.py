"""Reads workbooks in Excel's XML of 2003 row by row. Runs in a child process."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

from cragside.adapters.documents.archives import parsed
from cragside.adapters.documents.cell_values import value_shown
from cragside.adapters.documents.merged_cells import Merged, MergedRow, spread
from cragside.adapters.documents.number_formats import stated_number
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable
from cragside.adapters.documents.tables import MAX_ROWS, Tables

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
    """The visible sheets. Raises `Unreadable` for damaged files, and for those of other Office programs."""
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
            tables.add(sheet.get(f"{_S}Name", ""), spread(_rows(sheet, formats)))
    return tables.reading()


def _rows(sheet: Any, formats: dict[str, str]) -> Iterator[MergedRow]:
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
            cells[column - 1] = _shown(cell, formats.get(cell.get(f"{_S}StyleID", ""), ""))
            if across or down:
                merged.append((column, width, number + down))
        yield number, cells, merged


def _shown(cell: Any, written: str) -> str:
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
