"""Server-sent events, whose last one may be a failure."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import Request
from fastapi.responses import StreamingResponse
from fastapi.sse import ServerSentEvent, format_sse_event

from cragside.application.contract import error_envelope
from cragside.domain.errors import CragsideError
from cragside.entrypoints.http.errors import for_client, hidden

EVENTS = "text/event-stream"
# Proxies on the way should pass each event on when it comes.
_STREAMED = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

Events = AsyncGenerator[ServerSentEvent, None]


async def with_failure(request: Request, events: Events) -> AsyncIterator[ServerSentEvent]:
    """Pass events on. If they fail, the last one is `failed` with what the client may know."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except CragsideError as error:
        shown = for_client(error)
    except Exception as error:
        shown = hidden(error, request.method, request.url.path)
    else:
        return
    envelope = error_envelope(shown, getattr(request.state, "identifier", None))
    yield ServerSentEvent(event="failed", data=envelope)


def event_stream(request: Request, events: Events) -> StreamingResponse:
    """Answer with events, of which a failure is the last."""

    async def encoded() -> AsyncIterator[bytes]:
        async for event in with_failure(request, events):
            # JSON in ASCII is one line, whatever texts are in it.
            yield format_sse_event(event=event.event, data_str=json.dumps(event.data))

    return StreamingResponse(encoded(), media_type=EVENTS, headers=_STREAMED)
