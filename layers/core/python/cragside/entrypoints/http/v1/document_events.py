"""The progress of a document as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator

from fastapi.sse import ServerSentEvent
from pydantic import BaseModel

from cragside.application.contract import error_envelope
from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, NotFound
from cragside.domain.indexing import DocumentRecord
from cragside.entrypoints.http.errors import for_client
from cragside.entrypoints.http.v1.document_models import progress_of

# Seconds between two looks at the progress.
_LOOKS_EVERY = 0.5
# Seconds that a host with a time limit needs after the last event.
_MARGIN = 1.0


async def progress_events(
    container: Container, workspace: str, record: DocumentRecord, *, ends: float | None
) -> AsyncIterator[ServerSentEvent]:
    """`progress` at each change, then `done` or `failed`, or `later` if the host's time `ends` before that."""
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
        if ends is not None and time.monotonic() + _LOOKS_EVERY + _MARGIN > ends:
            yield ServerSentEvent(event="later", data=progress, retry=1000)
            return
        await asyncio.sleep(_LOOKS_EVERY)
        try:
            current = await document_record(container, workspace, record.id)
        except CragsideError as error:
            yield ServerSentEvent(event="failed", data=error_envelope(for_client(error)))
            return
    yield ServerSentEvent(event="failed", data=error_envelope(unknown_document(record.id)))


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
