"""Reads a request's body from ASGI, and JSON as Ollama reads it."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive

from cragside.domain.errors import ValidationError
from cragside.entrypoints.client_gone import ClientGone
from cragside.entrypoints.http.body_limit import bounded

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Body:
    """The part of a request's body that has been read. `complete`: it is the whole body."""

    data: bytes
    complete: bool


async def read_body(receive: Receive, limit: int) -> Body:
    """The body, or its beginning if it has more than `limit` bytes. Raises `ClientGone`."""
    data = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if not more or len(data) > limit:
            return Body(bytes(data), not more)


def parsed(body: bytes) -> dict[str, Any] | None:
    """The body as Ollama reads it, if it is a JSON object."""
    try:
        text = body.decode()
        request = json.loads(text, parse_constant=_not_json, parse_float=_finite)
        if "\\ud" in text.lower():  # Go reads half a surrogate pair as U+FFFD
            request = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(request, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def parsed_if_bounded(body: bytes) -> dict[str, Any] | None:
    """What `parsed` returns, and None for a body with too many keys or values to parse while others wait."""
    try:
        return parsed(bounded(body))
    except ValidationError:
        return None


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise ValueError(f"{literal} is beyond a 64-bit float")
    return value
