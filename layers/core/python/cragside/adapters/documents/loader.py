"""Files of all supported types as texts to index."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cragside.adapters.documents.kinds import ENDINGS, Kind, kind_of
from cragside.adapters.documents.parsing import ParserProcesses
from cragside.adapters.documents.reading import Origin, Reading, Unreadable, label, name_as_title
from cragside.domain.document import SourceText
from cragside.domain.errors import PayloadTooLarge, ValidationError

MAX_FILE_BYTES = 50 * 1024 * 1024

# Reading this much takes milliseconds; beyond, the event loop does not wait for it, and beyond that a process of its
# own does it, for even plain text can be made to take much memory.
_AT_ONCE = 32 * 1024
_IN_PROCESS = 256 * 1024
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?([\w:.+-]{1,40})""", re.IGNORECASE)


class FileLoader:
    """The `DocumentLoader` for files. Big files and those of intricate formats are parsed in child processes.

    `seconds` and `memory` (bytes) bound the reading of one file, `parallel` how many are read at a time. Nothing is
    started or imported before the first file.
    """

    def __init__(
        self, *, max_bytes: int = MAX_FILE_BYTES, seconds: int = 60, memory: int = 1024**3, parallel: int = 2
    ) -> None:
        self._max_bytes = max_bytes
        self._parsers = ParserProcesses(seconds=seconds, memory=memory)
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="loader")

    @property
    def file_types(self) -> tuple[str, ...]:
        """Endings of the names of supported files, such as `.pdf`."""
        return ENDINGS

    async def load(self, content: bytes, *, name: str, content_type: str | None = None) -> SourceText:
        """The text of a file; see `DocumentLoader.load`. An error's detail `reason` goes on after the file's name."""
        if len(content) > self._max_bytes:
            reason = too_large(len(content), self._max_bytes)
            raise PayloadTooLarge(f"{name} {reason}.", reason=reason, limit=self._max_bytes)
        try:
            kind, file_type = kind_of(content, name, content_type)
            charset = _CHARSET.search(content_type or "")
            reading = await self._read(kind, content, Origin(name, file_type, charset[1] if charset else None))
            if not reading.text.strip():
                raise Unreadable("is empty")
        except Unreadable as error:
            raise ValidationError(f"{name} {error.reason}.", reason=error.reason) from None
        return SourceText(
            name=name,
            text=reading.text,
            title=label(reading.title) or name_as_title(name),
            file_type=file_type,
            doc_type=reading.doc_type,
            size=len(content),
            marks=reading.marks,
            tier1=reading.tier1,
        )

    async def close(self) -> None:
        """End the child processes."""
        self._parsers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _read(self, kind: Kind, content: bytes, origin: Origin) -> Reading:
        if kind.isolated or len(content) > _IN_PROCESS:
            return await self._in_thread(self._parsers.read, kind, content, origin)
        if len(content) > _AT_ONCE:
            return await self._in_thread(kind.reader, content, origin)
        return kind.reader(content, origin)

    async def _in_thread(self, read: Callable[..., Reading], *arguments: Any) -> Reading:
        return await asyncio.get_running_loop().run_in_executor(self._threads, read, *arguments)


def too_large(size: int, limit: int) -> str:
    """Why a file of this size is refused."""
    return f"has {size:,} bytes, the limit is {limit:,} ({limit / 1024**2:.1f} MB)"
