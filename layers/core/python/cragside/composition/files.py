"""The files of this machine: how they are found, read, recognised and compared with documents."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cragside.adapters.documents.earlier_readings import EarlierReadings
from cragside.adapters.documents.folders import (
    FoundFile,
    Refused,
    find_files,
    path_of,
    read_file,
    root_of,
    source_name,
    source_of,
)
from cragside.adapters.documents.kinds import SUPPORTED
from cragside.adapters.documents.languages import LANGUAGES
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.markdown_syntax import title_of
from cragside.adapters.documents.ocr import available
from cragside.adapters.documents.reading import EMPTY, NEEDS_OCR, Ocr, is_no_mistake
from cragside.domain.document import SourceText
from cragside.domain.errors import ProcessingError, ValidationError

if TYPE_CHECKING:
    from cragside.settings import Settings

__all__ = [
    "EMPTY",
    "LANGUAGES",
    "NEEDS_OCR",
    "SUPPORTED",
    "FoundFile",
    "Refused",
    "find_files",
    "is_no_mistake",
    "path_of",
    "read_file",
    "root_of",
    "source_name",
    "source_of",
    "title_of",
]


def ocr_of(settings: "Settings") -> Ocr | None:
    """Return the settings of OCR; None if the extra `ocr` is not installed."""
    if not available():
        return None
    data = str(settings.ocr_data.expanduser().absolute()) if settings.ocr_data else ""
    return Ocr(settings.ocr_languages, data, settings.ocr_seconds)


# A leading dot: no workspace can have this name.
_FILE = ".readings"

# Whether a document has this digest.
IsStored = Callable[[str], Awaitable[bool]]


@dataclass
class TextDigests:
    """Digests of files' texts. A file that did not change since the last time is not read again.

    With a `file`, a later process need not parse or recognise the same bytes again either.
    """

    max_bytes: int
    ocr: Ocr | None = None
    file: Path | None = None
    _loader: FileLoader = field(init=False)
    _earlier: EarlierReadings = field(init=False)
    _known: dict[str, tuple[tuple[int, ...], str | Refused]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._loader = FileLoader(max_bytes=self.max_bytes, ocr=self.ocr)
        self._earlier = EarlierReadings(self.file, self.ocr)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._loader.close()

    async def of(self, file: FoundFile, is_stored: IsStored | None = None) -> str | Refused:
        """Return the `content_hash` that a document of this file has, or why the file cannot be used.

        A digest that an earlier process has computed of the same bytes is used only if a document has it.
        """
        try:
            status = await asyncio.to_thread(file.path.stat)
        except OSError as error:
            return Refused(file.name, f"cannot be read: {error.strerror}", source=file.source)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        before = self._known.get(file.source)
        if before is None or before[0] != stamp:
            before = self._known[file.source] = stamp, await self._read(file, is_stored)
        return before[1]

    async def _read(self, file: FoundFile, is_stored: IsStored | None) -> str | Refused:
        content = await asyncio.to_thread(read_file, file, self.max_bytes)
        if isinstance(content, Refused):
            return content
        key, earlier = await asyncio.to_thread(self._before, content, file.name)
        if earlier is not None and is_no_mistake(earlier):
            return _refused(file, earlier)
        if earlier is not None and is_stored and await is_stored(earlier):
            return earlier
        try:
            text = await self._loader.load(content, name=file.name)
        except (ValidationError, ProcessingError) as error:
            reason = str(error.details.get("reason", error.message))
            await asyncio.to_thread(self._earlier.keep, key, reason)
            return _refused(file, reason)
        digest = await asyncio.to_thread(_stored_digest, text)
        if not text.may_give_more:
            await asyncio.to_thread(self._earlier.keep, key, digest)
        return digest

    def _before(self, content: bytes, name: str) -> tuple[str, str | None]:
        key = self._earlier.key(content, name)
        return key, self._earlier.result(key)


def text_digests(settings: "Settings") -> TextDigests:
    """Make the digests for commands that compare files with documents. RAG_HOME remembers them if it can be written."""
    from cragside.store.baked import is_baked

    home = (
        settings.store_place if isinstance(settings.store_place, Path) and not is_baked(settings.store_place) else None
    )
    return TextDigests(settings.max_file_bytes, ocr_of(settings), home / _FILE if home else None)


def is_empty(refused: Refused) -> bool:
    """Tell if the file was refused because it has no text."""
    return refused.reason == EMPTY


def _refused(file: FoundFile, reason: str) -> Refused:
    return Refused(file.name, reason, skipped=is_no_mistake(reason), source=file.source)


def _stored_digest(text: SourceText) -> str:
    from cragside.store.chunking import digest_of, storable

    return digest_of(replace(text, text=storable(text.text)))
