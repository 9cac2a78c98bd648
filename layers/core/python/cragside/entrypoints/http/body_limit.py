"""Reading a request body that may be anything."""

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from cragside.domain.errors import PayloadTooLarge, UnsupportedMediaType, ValidationError

# A client that is answered while it still sends may see a broken connection instead of the answer, so the rest of a
# body that is too large is read and thrown away, up to so many times the limit.
_READ_TO_THE_END = 4
# Browsers let any page send other types, and none at all, without asking beforehand.
_JSON = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json")
# Each key that a route does not know costs a complaint: a million of them would keep the event loop busy for seconds.
MOST_KEYS = 20_000
# Python builds each value while the event loop waits; three million empty lists took six seconds.
MOST_VALUES = 200_000
_SHORTEST_KEY = 5  # bytes: `"":0,`
_NOT_JSON = "Send JSON as Content-Type: application/json."


def media_type(request: Request) -> str | None:
    """The type of the body without parameters, in lower case; None when the request names none or several."""
    types = request.headers.getlist("content-type")
    return types[0].partition(";")[0].strip().lower() if len(types) == 1 else None


async def json_body(request: Request, limit: int) -> bytes:
    """The body of a route that reads JSON. Raises `UnsupportedMediaType` for one of another type, before it is read.

    A request may name no type if it has no body. Raises `ValidationError` for more than 20,000 keys or 200,000 values.
    """
    kind = media_type(request)
    if kind is not None and _JSON.fullmatch(kind):
        return bounded(await whole_body(request, limit))
    if "content-type" in request.headers or "transfer-encoding" in request.headers or _length(request) != "0":
        raise UnsupportedMediaType(_NOT_JSON)
    # Not every gateway says how long a body is.
    if await whole_body(request, limit):
        raise UnsupportedMediaType(_NOT_JSON)
    return b""


def bounded(body: bytes) -> bytes:
    """The body. Raises `ValidationError` for one with more keys or values than are read.

    Nothing is parsed: parsing is what would take too long. What is no JSON is left to whoever parses it.
    """
    if len(body) <= MOST_KEYS * _SHORTEST_KEY:
        return body
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A value has a comma or an opening bracket ahead of it; lists and objects have one of their own besides.
    if unescaped.count(b'"') > 2 * (MOST_VALUES + MOST_KEYS):
        raise _too_many(MOST_VALUES, "values")
    outside = b"".join(unescaped.split(b'"')[::2])
    if outside.count(b":") > MOST_KEYS:
        raise _too_many(MOST_KEYS, "keys")
    if outside.count(b",") + outside.count(b"[") + outside.count(b"{") > MOST_VALUES:
        raise _too_many(MOST_VALUES, "values")
    return body


def _too_many(most: int, what: str) -> ValidationError:
    return ValidationError(f"The body has more than {most} {what}. Send it in several requests.")


def _length(request: Request) -> str:
    return request.headers.get("content-length", "0").strip()


async def whole_body(request: Request, limit: int) -> bytes:
    """The body. Raises `PayloadTooLarge` for more than `limit` bytes."""
    body, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        if size <= limit:
            body += part
        elif size > _READ_TO_THE_END * limit:
            break
    if size > limit:
        raise PayloadTooLarge(f"The body is larger than {limit} bytes.", limit=limit)
    return bytes(body)


async def json_object(request: Request, limit: int) -> dict[str, Any]:
    """The body as a JSON object. Raises for another type, for over `limit` bytes, and for what is no JSON object."""
    body = await json_body(request, limit)
    try:
        value = json.loads(body, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ValidationError("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise ValidationError("The body has to be a JSON object.")
    identifier = value.get("id")
    request.state.identifier = identifier if isinstance(identifier, str) else None
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refused(digits)


def _refused(constant: str) -> float:
    """NaN, Infinity and what overflows to it are no JSON and could not be answered as JSON."""
    raise ValueError(constant)


def bounded_route(limit: int) -> type[APIRoute]:
    """Routes that read JSON, and refuse other types and more than `limit` bytes before they look at a body."""

    class BoundedRoute(APIRoute):
        """A route whose body is read within the limit."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            """FastAPI's handler, given a request whose body has been read."""
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                if self.body_field is not None:
                    request = ReadRequest(request, await json_body(request, limit))
                return await handle(request)

            return answer

    return BoundedRoute


class ReadRequest(Request):
    """A request whose body has been read. Its JSON is what JSON allows: no NaN, no half of a surrogate pair."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    async def json(self) -> Any:
        """The body's value. Raises `json.JSONDecodeError`, which FastAPI expects."""
        return orjson.loads(self._body)
