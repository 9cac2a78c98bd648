"""The progress of a document as server-sent events."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from weakref import WeakValueDictionary

from fastapi.sse import ServerSentEvent
from pydantic import BaseModel

from cragside.bootstrap import Container
from cragside.domain.errors import NotFound, ServiceUnavailable
from cragside.domain.indexing import DocumentRecord
from cragside.entrypoints.http.readiness import SharedLook
from cragside.entrypoints.http.sent_events import Events
from cragside.entrypoints.http.v1.document_models import progress_of

# Seconds between two looks at the progress.
_LOOKS_EVERY = 0.5
# Streams that one token may have open; without tokens, all clients together.
_MOST_STREAMS = 100
# Seconds that a host with a time limit needs after the last event.
_MARGIN = 1.0


class ProgressStreams:
    """The open streams of a service. Those of one document share each look at it."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.clock = container.clock
        self._open: Counter[str] = Counter()
        self._looks = WeakValueDictionary[tuple[str, str], SharedLook[DocumentRecord | None]]()

    @contextmanager
    def opened(self, holder: str) -> Iterator[None]:
        """Count a stream during the block. Raises `ServiceUnavailable` if the holder has too many."""
        if self._open[holder] >= _MOST_STREAMS:
            raise ServiceUnavailable(
                "streams", f"{_MOST_STREAMS} streams are open. Close some, or list documents with ?status=pending."
            )
        self._open[holder] += 1
        try:
            yield
        finally:
            self._open[holder] -= 1
            if not self._open[holder]:
                del self._open[holder]

    def look(self, workspace: str, document_id: str) -> SharedLook[DocumentRecord | None]:
        """Return how to see a document as it was half a second ago at most."""
        ask = partial(document_record, self._container, workspace, document_id)
        return self._looks.setdefault((workspace, document_id), SharedLook(ask, self.clock, _LOOKS_EVERY))


async def progress_events(
    streams: ProgressStreams, workspace: str, record: DocumentRecord, *, ends: float | None
) -> Events:
    """`progress` at each change, then `done` or `failed`, or `later` if the host's time `ends` before that."""
    look = streams.look(workspace, record.id)
    sent: BaseModel | None = None
    current: DocumentRecord | None = record
    while current is not None:
        progress = progress_of(current)
        if progress != sent:
            yield ServerSentEvent(event="progress", data=progress)
            sent = progress
        if (end := _end_of(current)) is not None:
            yield ServerSentEvent(event=end, data=progress)
            return
        if ends is not None and streams.clock.monotonic() + _LOOKS_EVERY + _MARGIN > ends:
            yield ServerSentEvent(event="later", data=progress, retry=1000)
            return
        await streams.clock.sleep(_LOOKS_EVERY)
        current = await look.result()
    raise unknown_document(record.id)


async def document_record(container: Container, workspace: str, document_id: str) -> DocumentRecord | None:
    """A document. A task of its own looks it up, so that a stream does not keep the workspace open while it waits."""
    library = (await container.workspaces.open(workspace)).documents
    return await asyncio.create_task(library.document(document_id))


def _end_of(record: DocumentRecord) -> str | None:
    if record.status == "failed":
        return "failed"
    unfinished = record.status == "pending" or record.enrichment in ("pending", "processing", "mixed")
    return None if unfinished else "done"


def unknown_document(document_id: str) -> NotFound:
    """The error for an unknown id."""
    return NotFound(f"There is no document {document_id} in this workspace.")
