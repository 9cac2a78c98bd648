"""Remembers what came of reading files, so that the same bytes are not read again."""

import hashlib
import os
from contextlib import suppress
from itertools import islice
from pathlib import Path

import orjson

from cragside.adapters.documents.kinds import kind_of
from cragside.adapters.documents.ocr import data_files
from cragside.adapters.documents.reading import EMPTY, NO_TEXT, Ocr, Unreadable
from cragside.databases.private_files import FILE_MODE, make_folder, replace_file

# 13 MB.
MOST_READINGS = 100_000
_DIGEST = 64
# Reasons that only other bytes can change. A file that took too long may be read at a quieter moment.
_LASTING = (EMPTY, NO_TEXT)


class EarlierReadings:
    """Remembers the results of formats that a child process reads, in a file of digests without texts and names.

    A result is the digest of a text, or the reason why there is none. Without a `file`, nothing is remembered. If the
    file is damaged or cannot be written, files are read again.
    """

    def __init__(self, file: Path | None, ocr: Ocr | None) -> None:
        self._file = file
        self._ocr = ocr
        self._readers = b""
        self._results: dict[str, str] | None = None

    def key(self, content: bytes, name: str) -> str:
        """Identifies a file's bytes and the way they are read. "" for files whose results are not remembered."""
        try:
            kind, file_type = kind_of(content, name, None)
        except Unreadable:
            return ""
        if self._file is None or not kind.isolated:
            return ""
        self._readers = self._readers or _readers(self._ocr)
        facts = hashlib.sha256(self._readers + f"{kind.module} {file_type} ".encode())
        facts.update(content)
        return facts.hexdigest()

    def result(self, key: str) -> str | None:
        """Return the result for a key, None if there is none."""
        if self._file is None or not key:
            return None
        if self._results is None:
            self._results = _loaded(self._file)
        return self._results.get(key)

    def keep(self, key: str, result: str) -> None:
        """Remember the digest of a text, or a reason. Reasons that may not last are not remembered."""
        if self._file is None or not key or not _is_result(result) or self.result(key) == result:
            return
        if self._results is not None:
            self._results[key] = result
        with suppress(OSError):
            make_folder(self._file.parent)
            # Appended at once: whoever interrupts hours of OCR does not lose them.
            handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, FILE_MODE)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(_line(key, result))


def _loaded(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("ascii", "replace").split("\n") if path.is_file() else []
        pairs = (line.partition(" ") for line in lines)
        results = {key: result for key, _, result in pairs if len(key) == _DIGEST and _is_result(result)}
        if len(results) > MOST_READINGS:
            results = dict(islice(results.items(), len(results) - MOST_READINGS, None))
        if len(lines) > MOST_READINGS + 1:
            replace_file(path, "".join(_line(key, result) for key, result in results.items()))
    except OSError:
        return {}
    return results


def _is_result(result: str) -> bool:
    return result in _LASTING or len(result) == _DIGEST


def _line(key: str, result: str) -> str:
    return f"{key} {result}\n"


def _readers(ocr: Ocr | None) -> bytes:
    """Return a digest that changes with the readers, and with the languages of OCR and their files."""
    facts = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        facts.update(path.read_bytes())
    if ocr is not None:
        stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in data_files(ocr)]
        facts.update(orjson.dumps([ocr.languages, ocr.data, stamps]))
    return facts.digest()
