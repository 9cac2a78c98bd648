"""Keep room on the disk of RAG_HOME in a file, which a deletion on a full disk removes first."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from cragside.domain.errors import ServiceUnavailable

_NAME = ".spare"
# The log of a deletion has nine times the size of the document's text: this is for a document of 0.8 MB.
_BYTES = 8_000_000
# With less than this left, a new document is refused.
_LEAST_BYTES = 1_000_000


class SpareRoom:
    """Keeps room that nothing but a deletion uses: SQLite writes a log even to delete.

    It has the file from the first `keep` on, as far as the disk has room for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / _NAME
        self._keeping = False

    def keep(self) -> None:
        """Set the room aside."""
        self._keeping = True
        self._made()

    def check(self) -> None:
        """Set the room aside again, in a new file, if a deletion has used it.

        Raises `ServiceUnavailable("knowledge_base", ...)` if the disk has no room for it, or for a new document.
        """
        free = self._free()
        if free < _LEAST_BYTES or (self._keeping and not self._made()):
            message = (
                f"The disk of RAG_HOME is full: {free / 1e6:.1f} MB are left. Make room on it, or delete documents. "
                "Nothing is lost."
            )
            raise ServiceUnavailable("knowledge_base", message).at(str(self._folder))

    def give(self) -> bool:
        """Give the room to a deletion that failed. False if the disk is not full, or the room is given already."""
        if self._free() >= _LEAST_BYTES:
            return False
        try:
            self._file.unlink()
        except OSError:
            return False
        return True

    def _free(self) -> int:
        with suppress(OSError):
            return shutil.disk_usage(self._folder).free
        return _LEAST_BYTES  # there is no folder yet: what writes to it will tell

    def _made(self) -> bool:
        """Make the file if there is ample room for it. Return False if it is then not there."""
        if self._file.exists() or not self._folder.exists():
            return True
        if self._free() < _BYTES + 4 * _LEAST_BYTES:
            return False
        try:
            # Written, not only made longer: a file with holes keeps no room.
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, bytes(_BYTES))
            finally:
                os.close(descriptor)
        except OSError:
            return False
        return True
