"""Reads CSV and TSV row by row. The delimiter is found out; quoted values may span lines."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from cragside.adapters.documents.reading import FileOrigin, Reading
from cragside.adapters.documents.tables import TableRow, Tables
from cragside.adapters.documents.texts import decoded
from cragside.adapters.documents.texts import read as read_text

_DELIMITERS = ",;\t|"
_SAMPLE = 64 * 1024
_LOOKED_AT = 100
# So many rows, and so many of those below a preamble, make a table.
_FEWEST = 3
_MOST = 0.8
# Values with another delimiter were probably cut by the wrong one. Commas are also in numbers and texts.
_STRAY = re.compile(r"[;\t|]|,(?![\s\d])")


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The rows with their headers. A file without columns is read as plain text."""
    text = decoded(content, origin)
    # Excel's own first line, which is no row.
    stated = text[4] if text[:4].lower() == "sep=" and text[5:6] == "\n" else ""
    delimiter = stated or _delimiter(text[:_SAMPLE], preferred="\t" if origin.file_type == "tsv" else ",")
    # A quote without an end would make the rest of the file one value. Then quotes are characters like others.
    for quoted in (True, False) if delimiter else ():
        with suppress(csv.Error):
            tables = Tables(len(content))
            tables.add("", islice(_rows(text, delimiter, quoted=quoted), 1 if stated else 0, None))
            return tables.reading()
    return read_text(content, origin)


def _rows(text: str, delimiter: str, *, quoted: bool) -> Iterator[TableRow]:
    """Records, numbered as a spreadsheet numbers them."""
    lines = io.StringIO(text, newline="")
    if quoted:
        return enumerate(csv.reader(lines, delimiter=delimiter, strict=True), 1)
    return enumerate(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE), 1)


def _delimiter(sample: str, *, preferred: str) -> str:
    """The delimiter that gives most rows the same number of whole values, or "" if none gives columns."""
    best, chosen = 0.0, ""
    for delimiter in sorted(_DELIMITERS, key=lambda each: each != preferred):
        rows = list[list[str]]()
        # The sample's last row may be cut off.
        with suppress(csv.Error):
            lines = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
            rows += filter(None, islice(lines, _LOOKED_AT))
        widths = Counter(len(cells) for cells in rows if len(cells) > 1)
        columns, count = max(widths.items(), key=lambda each: (each[1], each[0]), default=(0, 0))
        if not count or not _is_table(rows, columns):
            continue
        cells = [cell for cells in rows if len(cells) == columns for cell in cells]
        cut = sum(bool(_STRAY.search(cell.replace(delimiter, ""))) for cell in cells)
        if (share := count * (1 - cut / len(cells))) > best:
            best, chosen = share, delimiter
    return chosen


def _is_table(rows: Sequence[Sequence[str]], columns: int) -> bool:
    """Tell if half of the rows have several values, or most of those below a preamble have `columns` values."""
    if 2 * sum(len(cells) > 1 for cells in rows) >= len(rows):
        return True
    begin = next(at for at, cells in enumerate(rows) if len(cells) == columns)
    count = sum(len(cells) == columns for cells in rows)
    return count >= _FEWEST and count >= _MOST * (len(rows) - begin)
