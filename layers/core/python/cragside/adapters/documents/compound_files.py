"""Reads compound files (MS-CFB), the folders of streams that Office and Outlook write, with olefile."""

import io
import struct
from collections.abc import Sequence
from typing import Any

from cragside.adapters.documents.reading import Unreadable

_SECTOR_SHIFT, _TABLE_SECTORS = 30, 44  # where the header says them
_HEADER = 512
_END = 0xFFFFFFFE


class Storage:
    """A folder of a compound file. `Unreadable`, with the reason `damaged`, is raised for chains that do not end."""

    def __init__(self, file: "_File", entry: Any) -> None:
        self._file = file
        self._entry = entry

    def stream(self, name: str) -> bytes | None:
        """The bytes of a stream, None if there is none of this name."""
        from olefile import STGTY_STREAM

        held = self._entry.kids_dict.get(name.lower())
        return self._file.read(held) if held is not None and held.entry_type == STGTY_STREAM else None

    def storages(self, beginning: str) -> "list[Storage]":
        """The folders in this one whose names begin so, in the order of their names."""
        from olefile import STGTY_STORAGE

        held = sorted(self._entry.kids_dict.items())
        return [
            Storage(self._file, entry)
            for name, entry in held
            if name.startswith(beginning.lower()) and entry.entry_type == STGTY_STORAGE
        ]


def opened(content: bytes, damaged: str) -> Storage:
    """The outermost folder of a compound file."""
    file = _File(content, damaged)
    return Storage(file, file.root)


class _File:
    """Streams of one file, which together are no longer than the file."""

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
        """Refuse a chain of sectors that leaves the file or never ends. olefile reads those again and again."""
        for _ in range(len(table)):
            sector = table[sector]
            if sector == _END:
                return
        raise Unreadable(self._damaged)
