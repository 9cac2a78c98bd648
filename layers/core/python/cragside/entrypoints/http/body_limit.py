"""Limits for request bodies: their type, their size, and how many JSON values they may have."""

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from typing_extensions import override

from cragside.domain.errors import PayloadTooLarge, UnsupportedMediaType, ValidationError
from cragside.entrypoints.http.request_access import container_of

# Web pages may send other types, or no type, to any server without asking first.
_JSON = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json")
# Each unknown key costs a complaint: a million of them would block the event loop for seconds.
MOST_KEYS = 20_000
# Python builds each value while the event loop waits: three million empty lists took six seconds.
MOST_VALUES = 200_000
_LONGEST_LENGTH = 20  # digits
_SHORTEST_KEY = 5  # bytes: `"":0,`
_NOT_JSON = "Send JSON as Content-Type: application/json."


class BoundedRoute(APIRoute):
    """A route that reads JSON, and refuses other types and bodies above `RAG_MAX_BODY_BYTES` before it parses them."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            if self.body_field is not None:
                request = _ReadRequest(request, await json_body(request))
            return await handle(request)

        return answer


class _ReadRequest(Request):
    """A request whose body has been read. Its JSON is strict: no NaN, no half of a surrogate pair."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body

    @override
    async def json(self) -> Any:
        # Raises `json.JSONDecodeError`, as FastAPI expects.
        return orjson.loads(self._body)


def media_type(request: Request) -> str | None:
    """The body's type in lower case, without parameters. None if the request has no type or several."""
    types = request.headers.getlist("content-type")
    return types[0].partition(";")[0].strip().lower() if len(types) == 1 else None


async def json_body(request: Request) -> bytes:
    """The body of a route that reads JSON. A request without a body needs no type.

    Raises `UnsupportedMediaType` for another type before it reads the body, `PayloadTooLarge` for a body above
    `RAG_MAX_BODY_BYTES`, and `ValidationError` for more than 20,000 keys or 200,000 values.
    """
    limit = container_of(request).settings.max_body_bytes
    kind = media_type(request)
    if kind is not None and _JSON.fullmatch(kind):
        return bounded(await _whole_body(request, limit))
    length = request.headers.get("content-length", "0").strip()
    if "content-type" in request.headers or "transfer-encoding" in request.headers or length != "0":
        raise UnsupportedMediaType(_NOT_JSON)
    # Not every gateway sends the length of a body.
    if await _whole_body(request, limit):
        raise UnsupportedMediaType(_NOT_JSON)
    return b""


async def json_object(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Raises what `json_body` raises, and `ValidationError` for anything but an object."""
    body = await json_body(request)
    try:
        value = json.loads(body, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ValidationError("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise ValidationError("The body must be a JSON object.")
    identifier = value.get("id")
    request.state.identifier = identifier if isinstance(identifier, str) else None
    return value


def bounded(body: bytes) -> bytes:
    """The same body. Raises `ValidationError` if it has too many keys or values.

    This counts marks instead of parsing, because parsing would take too long. Invalid JSON is left to the parser.
    """
    if len(body) <= MOST_KEYS * _SHORTEST_KEY:
        return body
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A comma or an opening bracket precedes each value; lists and objects have an opening bracket of their own.
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


async def _whole_body(request: Request, limit: int) -> bytes:
    """The body. One that is too large is refused before it comes, as far as its length is told.

    The server keeps the connection for a client that still sends, so that it gets the answer.
    """
    body, told = bytearray(), request.headers.get("content-length", "")
    refusal = PayloadTooLarge(f"The body is larger than {limit} bytes.", limit=limit)
    if told.isascii() and told.isdigit() and (len(told) > _LONGEST_LENGTH or int(told) > limit):
        raise refusal
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise refusal
    return bytes(body)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refused(digits)


def _refused(constant: str) -> float:
    # NaN and Infinity, also by overflow, are not JSON and could not be sent back as JSON.
    raise ValueError(constant)
