"""Loads files of all supported types as texts to index."""

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from typing_extensions import override

from cragside.adapters.documents.kinds import SCAN, Kind, kind_of
from cragside.adapters.documents.parsing import ParserProcesses
from cragside.adapters.documents.reading import (
    EMPTY,
    NEEDS_OCR,
    FileOrigin,
    Ocr,
    Reading,
    Unreadable,
    contained,
    label,
    name_as_title,
)
from cragside.adapters.fair_slots import FairSlots
from cragside.domain.document import SourceText
from cragside.domain.errors import PayloadTooLarge, ServiceUnavailable, ValidationError
from cragside.ports.files import DocumentLoader

MAX_FILE_BYTES = 50 * 1024 * 1024

# Files up to the first size take milliseconds. Larger ones are read in a thread, and above the second size in a child
# process, because even plain text can be made to take much memory.
_AT_ONCE = 32 * 1024
_IN_PROCESS = 256 * 1024
_MOST_PAGES_NAMED = 5
_LONGEST_UNREAD = 500
_BLANKS = b"\xef\xbb\xbf \t\r\n\v\f"  # with the byte order mark
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?([\w:.+-]{1,40})""", re.IGNORECASE)


class FileLoader(DocumentLoader):
    """Reads files. Child processes parse large files and those of complex formats.

    `seconds` and `memory` (bytes) bound the reading of one file, `parallel` the number of files read at a time.
    Workspaces take turns, and a file waits at most `patience` seconds. Without `ocr`, pictures are refused; with it,
    they are read one at a time. Nothing is started or imported before the first file. The detail `reason` of an error
    continues the sentence that the file's name begins.
    """

    def __init__(
        self,
        *,
        max_bytes: int = MAX_FILE_BYTES,
        seconds: int = 60,
        memory: int = 1024**3,
        parallel: int = 3,
        patience: float = 30.0,
        ocr: Ocr | None = None,
    ) -> None:
        self._max_bytes = max_bytes
        self._parsers = ParserProcesses(seconds=seconds, memory=memory)
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="loader")
        self._turns = FairSlots(parallel)
        # OCR takes minutes, which other files must not wait for: one file at a time, and it waits first.
        self._ocr_turns = FairSlots(1)
        self._patience = patience
        self._ocr = ocr

    @override
    async def load(
        self, content: bytes, *, name: str, content_type: str | None = None, workspace: str = ""
    ) -> SourceText:
        if len(content) > self._max_bytes:
            reason = too_large(len(content), self._max_bytes)
            raise PayloadTooLarge(f"{name} {reason}.", reason=reason, limit=self._max_bytes)
        try:
            with contained():
                kind, file_type = kind_of(content, name, content_type)
            if not content.strip(_BLANKS):
                raise Unreadable(EMPTY)
            charset = _CHARSET.search(content_type or "")
            origin = FileOrigin(name, file_type, charset[1] if charset else None, self._ocr)
            reading = await self._read(kind, content, origin, workspace)
            pictures = ""
            if reading.pictured:
                reading, pictures = await self._with_pictures(reading, content, origin, workspace)
            if not reading.text.strip():
                raise Unreadable(EMPTY)
        except Unreadable as error:
            raise ValidationError(f"{name} {error.reason}.", reason=error.reason) from None
        unread = label("; ".join(filter(None, (reading.unread, pictures))), _LONGEST_UNREAD)
        return SourceText(
            name=name,
            text=reading.text,
            title=label(reading.title) or name_as_title(name),
            file_type=file_type,
            doc_type=reading.doc_type,
            size=len(content),
            marks=reading.marks,
            tier1={**reading.tier1, **({"unread": unread} if unread else {})},
            properties=reading.properties,
            unread=unread,
            may_give_more=bool(pictures),
        )

    async def close(self) -> None:
        """End the child processes."""
        self._parsers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _read(self, kind: Kind, content: bytes, origin: FileOrigin, workspace: str) -> Reading:
        if kind.isolated or len(content) > _IN_PROCESS:
            return await self._parsed(kind, content, origin, workspace)
        if len(content) > _AT_ONCE:
            return await self._in_thread(workspace, _read_here, kind, content, origin)
        return _read_here(kind, content, origin)

    async def _with_pictures(
        self, reading: Reading, content: bytes, origin: FileOrigin, workspace: str
    ) -> tuple[Reading, str]:
        """Return the reading with the text that OCR recognises.

        If OCR fails, a text that was there without it is kept; then the second value says which pages are missing.
        """
        try:
            if self._ocr is None:
                raise Unreadable(NEEDS_OCR)
            return await self._parsed(SCAN, content, origin, workspace), ""
        except Unreadable as error:
            if not reading.text.strip():
                raise
            return reading, _unread(reading.pictured, error.reason)

    async def _parsed(self, kind: Kind, content: bytes, origin: FileOrigin, workspace: str) -> Reading:
        if not (kind.recognised and origin.ocr):
            return await self._in_thread(workspace, self._parsers.read, kind, content, origin)
        await _wait(self._ocr_turns, workspace, origin.ocr.seconds)
        try:
            reading = await self._started(workspace, self._parsers.read, kind, content, origin)
        except BaseException:
            self._ocr_turns.give_back(workspace)
            raise
        _at_the_end(reading, self._ocr_turns.give_back, workspace)
        return await asyncio.wrap_future(reading)

    async def _in_thread(self, workspace: str, read: Callable[..., Reading], *arguments: Any) -> Reading:
        return await asyncio.wrap_future(await self._started(workspace, read, *arguments))

    async def _started(self, workspace: str, read: Callable[..., Reading], *arguments: Any) -> "Future[Reading]":
        await _wait(self._turns, workspace, self._patience)
        reading = self._threads.submit(read, *arguments)
        _at_the_end(reading, self._turns.give_back, workspace)
        return reading


def _read_here(kind: Kind, content: bytes, origin: FileOrigin) -> Reading:
    with contained():
        return kind.reader(content, origin)


async def _wait(turns: FairSlots, workspace: str, patience: float) -> None:
    try:
        await turns.take(workspace, patience=patience)
    except TimeoutError:
        raise ServiceUnavailable(
            "loader", "Too many files are being read at the moment. Send the file again in a few seconds."
        ) from None


def _at_the_end(reading: "Future[Reading]", give_back: Callable[[str], None], workspace: str) -> None:
    """Give the turn back when the reading ends: the client, and the task that waits, may leave before that."""
    loop = asyncio.get_running_loop()

    def ended(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nobody waits for a turn
            loop.call_soon_threadsafe(give_back, workspace)

    reading.add_done_callback(ended)


def _unread(pages: Sequence[int], reason: str) -> str:
    numbers = ", ".join(map(str, pages[:_MOST_PAGES_NAMED]))
    more = f" and {len(pages) - _MOST_PAGES_NAMED} more" if len(pages) > _MOST_PAGES_NAMED else ""
    pages_were = f"page {numbers} was" if len(pages) == 1 else f"pages {numbers}{more} were"
    return f"{pages_were} not read, because the file {reason}"


def too_large(size: int, limit: int) -> str:
    """Why a file of this size is refused."""
    return f"has {size:,} bytes, the limit is {limit:,} ({limit / 1024**2:.1f} MB)"
