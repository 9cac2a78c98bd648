"""Reads Office files of 1997 to 2003 with kreuzberg and calamine, and the folders of streams that they are."""

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, repeat
from typing import Any

from cragside.adapters.documents.number_formats import value_shown
from cragside.adapters.documents.reading import NEEDS_OFFICE, Composer, FileOrigin, Reading, Unreadable, facts_of
from cragside.adapters.documents.tables import TableRow, Tables

_SECTOR_SHIFT, _TABLE_SECTORS = 30, 44  # where the header says them
_HEADER = 512
_END_OF_CHAIN = 0xFFFFFFFE


class Storage:
    """A folder of a compound file. `Unreadable`, with the reason `damaged`, is raised for chains that do not end."""

    def __init__(self, file: "_File", entry: Any) -> None:
        self._file = file
        self._entry = entry

    def stream(self, name: str) -> bytes | None:
        """Return the bytes of a stream, None if there is none of this name."""
        from olefile import STGTY_STREAM

        held = self._entry.kids_dict.get(name.lower())
        return self._file.read(held) if held is not None and held.entry_type == STGTY_STREAM else None

    def storages(self, beginning: str) -> "list[Storage]":
        """Return the folders in this one whose names begin so, in the order of their names."""
        from olefile import STGTY_STORAGE

        held = sorted(self._entry.kids_dict.items())
        return [
            Storage(self._file, entry)
            for name, entry in held
            if name.startswith(beginning.lower()) and entry.entry_type == STGTY_STORAGE
        ]


def opened(content: bytes, damaged: str) -> Storage:
    """Return the outermost folder of a compound file."""
    file = _File(content, damaged)
    return Storage(file, file.root)


class _File:
    """Reads the streams of a file. All that are read together have no more bytes than the file."""

    def __init__(self, content: bytes, damaged: str) -> None:
        from olefile import DEFECT_INCORRECT, OleFileIO

        self._damaged = damaged
        self._left = len(content)
        try:
            # The table of sectors is read as often as the header says.
            shift = struct.unpack_from("<H", content, _SECTOR_SHIFT)[0]
            if struct.unpack_from("<I", content, _TABLE_SECTORS)[0] << min(shift, 16) > len(content):
                raise Unreadable(damaged)
            self._ole = OleFileIO(io.BytesIO(content), raise_defects=DEFECT_INCORRECT)
            self._follow(self._ole.fat, self._ole.first_dir_sector)
        except (Unreadable, MemoryError, RecursionError):
            raise
        except Exception:  # olefile raises errors of many kinds
            raise Unreadable(damaged) from None
        self.root = self._ole.root

    def read(self, entry: Any) -> bytes:
        self._left -= entry.size
        if self._left < 0:
            raise Unreadable(self._damaged)
        if not entry.size:
            return b""
        try:
            # By name, it would look through all streams of the folder.
            content: bytes = self._ole._open(entry.isectStart, entry.size).read()
            self._follow(self._ole.minifat if entry.is_minifat else self._ole.fat, entry.isectStart)
        except (Unreadable, MemoryError, RecursionError):
            raise
        except Exception:
            raise Unreadable(self._damaged) from None
        return content

    def _follow(self, table: Sequence[int], sector: int) -> None:
        """Refuse a chain of sectors that leaves the file or never ends, which olefile would read again and again."""
        for _ in range(len(table)):
            sector = table[sector]
            if sector == _END_OF_CHAIN:
                return
        raise Unreadable(self._damaged)


# Kinds of records.
_BEGIN, _END_OF_PART, _SHEET, _FORMAT, _LOOK = 0x0809, 0x0A, 0x85, 0x041E, 0xE0
# Cells with one number: as it is, in short, or worked out.
_NUMBERS = frozenset({0x0203, 0x027E, 0x06})
_ROW_OF_NUMBERS = 0xBD
_PASSWORD = 0x2F
_LATER = 0x0600  # Excel 97 and later, with texts in UTF-16
_GENERAL = "General"

# Formats by row and column, counted from 0.
Formats = dict[tuple[int, int], str]


def stream_of(content: bytes) -> bytes:
    """Return the records of a workbook, none where calamine reads a file that olefile does not."""
    with suppress(Unreadable):
        folder = opened(content, "")
        return folder.stream("Workbook") or folder.stream("Book") or b""
    return b""


def is_locked(stream: bytes) -> bool:
    """Tell if a workbook is protected by a password. Its second record says so."""
    return any(kind == _PASSWORD for kind, _ in islice(_records(stream, 0), 2))


def formats_of(stream: bytes) -> list[Formats]:
    """Return the formats of the numbers of each sheet, in their order. Cells without one are left out."""
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
    """Yield the records of the part that begins here, without those of its charts."""
    depth = 0
    while start + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, start)
        depth += (kind == _BEGIN) - (kind == _END_OF_PART)
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


_TYPES = {"doc": "application/msword", "ppt": "application/vnd.ms-powerpoint"}
# Names of streams, as the file's folder has them.
_STREAMS = {"doc": "WordDocument", "xls": "Workbook", "ppt": "PowerPoint Document"}
_LOCKED_STREAMS = ("EncryptedPackage", "EncryptedSummary")
# The beginning of a document of Word 97 to 2003, and its byte with the bit for encryption.
_WORD_HEAD, _WORD_FLAGS, _WORD_LOCKED = b"\xec\xa5\xc1\x00", 11, 0x01
_LOCKED = "is protected by a password: save it without one"
_DAMAGED = "is damaged, or no Office document that can be read: save it as .docx, .xlsx or .pptx"


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the text of a document or a presentation, the visible sheets of a workbook.

    Raises `Unreadable` for protected and damaged files, and without the extra.
    """
    held = [kind for kind, stream in _STREAMS.items() if _has(content, stream)]
    if not held and _has(content, "Book"):
        held = ["xls"]
    if any(_has(content, stream) for stream in _LOCKED_STREAMS):
        raise Unreadable(_LOCKED)
    if not held:
        raise Unreadable(_DAMAGED)
    kind = origin.file_type if origin.file_type in held else held[0]
    try:
        return _workbook(content) if kind == "xls" else _document(content, kind)
    except ImportError:
        raise Unreadable(NEEDS_OFFICE) from None
    except (Unreadable, MemoryError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise Unreadable(_LOCKED if "password" in str(error).lower() else _DAMAGED) from None


def _document(content: bytes, kind: str) -> Reading:
    from kreuzberg import ExtractionConfig, extract_bytes_sync

    if kind == "doc" and _is_locked(content):
        raise Unreadable(_LOCKED)
    result = extract_bytes_sync(content, _TYPES[kind], ExtractionConfig(use_cache=False))
    stated = result.metadata
    composer = Composer()
    composer.add(result.content.replace("\x00", "").strip())
    author = next(iter(stated.get("authors") or ()), None)
    return composer.reading(facts_of(stated.get("title"), author, stated.get("created_at")))


def _workbook(content: bytes) -> Reading:
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    stream = stream_of(content)
    if is_locked(stream):
        raise Unreadable(_LOCKED)
    book = CalamineWorkbook.from_filelike(io.BytesIO(content))
    formats = chain(formats_of(stream), repeat(Formats()))
    tables = Tables(len(content))
    for sheet, written in zip(book.sheets_metadata, formats, strict=False):
        if sheet.visible == SheetVisibleEnum.Visible:
            tables.add(sheet.name, _rows(book.get_sheet_by_name(sheet.name), written))
    return tables.reading()


def _rows(sheet: Any, written: Formats) -> Iterator[TableRow]:
    top, left = sheet.start or (0, 0)
    for row, cells in enumerate(sheet.to_python(), top):
        yield row + 1, [value_shown(cell, written.get((row, column), "")) for column, cell in enumerate(cells, left)]


def _has(content: bytes, stream: str) -> bool:
    return stream.encode("utf-16-le") in content


def _is_locked(content: bytes) -> bool:
    """Tell if the document says at its beginning that it is encrypted. kreuzberg would read random letters from it."""
    head = content.find(_WORD_HEAD)
    return head >= 0 and any(byte & _WORD_LOCKED for byte in content[head + _WORD_FLAGS : head + _WORD_FLAGS + 1])
