"""Reads Office files of 1997 to 2003 with kreuzberg and calamine, which the extra `office` installs.

Runs in a child process.
"""

import io
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

from cragside.adapters.documents.cell_values import value_shown
from cragside.adapters.documents.old_formats import Formats, formats_of, is_locked, stream_of
from cragside.adapters.documents.reading import NEEDS_OFFICE, Composer, FileOrigin, Reading, Unreadable, facts_of
from cragside.adapters.documents.tables import TableRow, Tables

_TYPES = {"doc": "application/msword", "ppt": "application/vnd.ms-powerpoint"}
# Names of streams, as the file's folder has them.
_STREAMS = {"doc": "WordDocument", "xls": "Workbook", "ppt": "PowerPoint Document"}
_LOCKED_STREAMS = ("EncryptedPackage", "EncryptedSummary")
# The beginning of a document of Word 97 to 2003, and its byte with the bit for encryption.
_WORD_HEAD, _WORD_FLAGS, _WORD_LOCKED = b"\xec\xa5\xc1\x00", 11, 0x01
_LOCKED = "is protected by a password: save it without one"
_DAMAGED = "is damaged, or no Office document that can be read: save it as .docx, .xlsx or .pptx"


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The text of a document or a presentation, the visible sheets of a workbook.

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
    """Tell if the document says at its beginning that it is encrypted. kreuzberg would read letters by chance."""
    head = content.find(_WORD_HEAD)
    return head >= 0 and any(byte & _WORD_LOCKED for byte in content[head + _WORD_FLAGS : head + _WORD_FLAGS + 1])
