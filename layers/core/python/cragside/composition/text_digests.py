"""Computes the digests that a store gives to the texts of files."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Self

from cragside.adapters.documents.folders import FoundFile, Refused, read_file
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.reading import EMPTY, Ocr, is_no_mistake
from cragside.domain.document import SourceText
from cragside.domain.errors import ProcessingError, ValidationError


@dataclass
class TextDigests:
    """Digests of files' texts. A file that did not change since the last time is not read again."""

    max_bytes: int
    ocr: Ocr | None = None
    _loader: FileLoader = field(init=False)
    _known: dict[str, tuple[tuple[int, ...], str | Refused]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._loader = FileLoader(max_bytes=self.max_bytes, ocr=self.ocr)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._loader.close()

    async def of(self, file: FoundFile) -> str | Refused:
        """The `content_hash` that a document of this file has, or why the file cannot be used."""
        try:
            status = await asyncio.to_thread(file.path.stat)
        except OSError as error:
            return Refused(file.name, f"cannot be read: {error.strerror}", source=file.source)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        before = self._known.get(file.source)
        if before is None or before[0] != stamp:
            before = self._known[file.source] = stamp, await self._read(file)
        return before[1]

    async def _read(self, file: FoundFile) -> str | Refused:
        content = await asyncio.to_thread(read_file, file, self.max_bytes)
        if isinstance(content, Refused):
            return content
        try:
            text = await self._loader.load(content, name=file.name)
        except (ValidationError, ProcessingError) as error:
            reason = str(error.details.get("reason", error.message))
            return Refused(file.name, reason, skipped=is_no_mistake(reason), source=file.source)
        return await asyncio.to_thread(_stored_digest, text)


def is_empty(refused: Refused) -> bool:
    """Whether the file was refused because it has no text."""
    return refused.reason == EMPTY


def _stored_digest(text: SourceText) -> str:
    from cragside.adapters.lightrag.indexing.versions import digest_of
    from cragside.adapters.lightrag.storable import storable

    return digest_of(replace(text, text=storable(text.text)))
