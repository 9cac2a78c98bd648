"""Finds the formats of numbers in the records of a workbook of Excel 5 to 2003 (MS-XLS). calamine tells none."""

import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from cragside.adapters.documents.compound_files import opened
from cragside.adapters.documents.reading import Unreadable

# Kinds of records.
_BEGIN, _END, _SHEET, _FORMAT, _LOOK = 0x0809, 0x0A, 0x85, 0x041E, 0xE0
# Cells with one number: as it is, in short, or worked out.
_NUMBERS = frozenset({0x0203, 0x027E, 0x06})
_ROW_OF_NUMBERS = 0xBD
_PASSWORD = 0x2F
_LATER = 0x0600  # Excel 97 and later, with texts in UTF-16
_GENERAL = "General"

# Formats by row and column, counted from 0.
Formats = dict[tuple[int, int], str]


def stream_of(content: bytes) -> bytes:
    """The records of a workbook, none where calamine reads a file that olefile does not."""
    with suppress(Unreadable):
        folder = opened(content, "")
        return folder.stream("Workbook") or folder.stream("Book") or b""
    return b""


def is_locked(stream: bytes) -> bool:
    """Tell if a workbook is protected by a password. Its second record says so."""
    return any(kind == _PASSWORD for kind, _ in islice(_records(stream, 0), 2))


def formats_of(stream: bytes) -> list[Formats]:
    """The formats of the numbers of each sheet, in their order. Cells without one are left out."""
    sheets, looks = list[int](), list[int]()
    named = _builtin()
    later = True
    for kind, record in _records(stream, 0):
        if kind == _BEGIN and len(record) > 1:
            later = struct.unpack_from("<H", record)[0] >= _LATER
        elif kind == _SHEET and len(record) > 3:
            sheets.append(struct.unpack_from("<I", record)[0])
        elif kind == _LOOK and len(record) > 3:
            looks.append(struct.unpack_from("<H", record, 2)[0])
        elif kind == _FORMAT and len(record) > 5:
            named[struct.unpack_from("<H", record)[0]] = _text(record[2:], later=later)
    written = [named.get(look, _GENERAL) for look in looks]
    return [_of_sheet(stream, start, written) for start in sheets]


def _of_sheet(stream: bytes, start: int, written: list[str]) -> Formats:
    found = Formats()
    for kind, record in _records(stream, start):
        if kind in _NUMBERS and len(record) > 5:
            row, column, *looks = struct.unpack_from("<HHH", record)
        elif kind == _ROW_OF_NUMBERS and len(record) > 5:
            row, column = struct.unpack_from("<HH", record)
            looks = [look for look, _ in struct.iter_unpack("<HI", record[4 : 4 + (len(record) - 6) // 6 * 6])]
        else:
            continue
        for at, look in enumerate(looks, column):
            if look < len(written) and written[look] != _GENERAL:
                found[row, at] = written[look]
    return found


def _records(stream: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """The records of the part that begins here, without those of charts in it."""
    depth = 0
    while start + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, start)
        depth += (kind == _BEGIN) - (kind == _END)
        if depth <= 0:
            return
        if depth == 1:
            yield kind, stream[start + 4 : start + 4 + size]
        start += 4 + size


def _text(record: bytes, *, later: bool) -> str:
    if not later:
        return record[1 : 1 + record[0]].decode("cp1252", "replace")
    length, is_wide = struct.unpack_from("<HB", record)
    text = record[3:]
    return text[: 2 * length].decode("utf-16-le", "replace") if is_wide & 1 else text[:length].decode("latin-1")


def _builtin() -> dict[int, str]:
    from openpyxl.styles.numbers import BUILTIN_FORMATS

    return dict(BUILTIN_FORMATS)
