"""Server-sent events that a route makes itself."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi.sse import format_sse_event

EVENTS = "text/event-stream"
# Proxies on the way should pass each event on when it comes.
STREAMED = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def sent_event(name: str, data: Mapping[str, Any]) -> bytes:
    """An event. JSON in ASCII is one line, whatever texts are in it."""
    return format_sse_event(event=name, data_str=json.dumps(data))
