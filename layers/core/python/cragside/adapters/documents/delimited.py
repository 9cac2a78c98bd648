"""Reads CSV and TSV row by row. The delimiter is found out; quoted values may span lines."""

import csv
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from cragside.adapters.documents import texts
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading
from cragside.adapters.documents.tables import TableRow, Tables

_DELIMITERS = ",;\t|"
_SAMPLE = 64 * 1024
_LOOKED_AT = 100


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The rows with their headers. A file without columns is read as plain text."""
    text = texts.decoded(content, origin)
    # Excel's own first line, which is no row.
    stated = text[4] if text[:4].lower() == "sep=" and text[5:6] == "\n" else ""
    delimiter = stated or _delimiter(text[:_SAMPLE], preferred="\t" if origin.file_type == "tsv" else ",")
    # A quote without an end would make the rest of the file one value. Then quotes are characters like others.
    for quoted in (True, False) if delimiter else ():
        with suppress(csv.Error):
            tables, composer = Tables(len(content)), Composer()
            tables.add("", islice(_rows(text, delimiter, quoted=quoted), 1 if stated else 0, None))
            tables.compose(composer)
            return Reading(composer.text, marks=composer.marks)
    return texts.read(content, origin)


def _rows(text: str, delimiter: str, *, quoted: bool) -> Iterator[TableRow]:
    """Records, numbered as a spreadsheet numbers them."""
    lines = io.StringIO(text, newline="")
    if quoted:
        return enumerate(csv.reader(lines, delimiter=delimiter, strict=True), 1)
    return enumerate(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE), 1)


def _delimiter(sample: str, *, preferred: str) -> str:
    """The delimiter that gives most rows the same number of columns, or "" if none gives two columns."""
    best, chosen = 0.0, ""
    for delimiter in sorted(_DELIMITERS, key=lambda each: each != preferred):
        widths = Counter[int]()
        # The sample's last row may be cut off.
        with suppress(csv.Error):
            for cells in islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), _LOOKED_AT):
                widths[len(cells)] += bool(cells)
        columns, rows = max(widths.items(), key=lambda each: (each[1], each[0]), default=(0, 0))
        share = rows / max(widths.total(), 1)
        if columns > 1 and share > best:
            best, chosen = share, delimiter
    return chosen if best >= 0.5 else ""
