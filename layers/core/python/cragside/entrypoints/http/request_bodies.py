"""Request bodies: JSON with limits for its size and values, and forms whose files are read one after the other."""

import json
import math
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from typing_extensions import override

from cragside.domain.errors import PayloadTooLarge, ServiceUnavailable, UnsupportedMediaType, ValidationError
from cragside.entrypoints.http.request_access import container_of
from cragside.entrypoints.request_headers import header_text

# Web pages may send other types, or no type, to any server without asking first.
_JSON = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json")
# Each unknown key costs a complaint: a million of them would block the event loop for seconds.
MOST_KEYS = 20_000
# Python builds each value while the event loop waits: three million empty lists took six seconds.
MOST_VALUES = 200_000
_LONGEST_LENGTH = 20  # digits
_SHORTEST_KEY = 5  # bytes: `"":0,`
_NOT_JSON = "Send JSON as Content-Type: application/json."

_MOST_FIELD_BYTES = 64 * 1024


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
    """Return the body's type in lower case, without parameters. None if the request has no type or several."""
    types = request.headers.getlist("content-type")
    return types[0].partition(";")[0].strip().lower() if len(types) == 1 else None


async def json_body(request: Request) -> bytes:
    """Return the body of a route that reads JSON. A request without a body needs no type.

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
        value = strict_json(body)
    except (ValueError, RecursionError) as error:
        raise ValidationError("The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise ValidationError("The body must be a JSON object.")
    identifier = value.get("id")
    request.state.identifier = identifier if isinstance(identifier, str) else None
    return value


def bounded(body: bytes) -> bytes:
    """Return the same body. Raises `ValidationError` if it has too many keys or values.

    It counts signs instead of parsing, which would take too long. Invalid JSON is left to the parser.
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
    """Return the body. A body that is too large is refused before it is read, if its length is stated.

    The server keeps the connection open for a client that still sends, so that it gets the answer.
    """
    body, length = bytearray(), request.headers.get("content-length", "")
    refusal = PayloadTooLarge(f"The body is larger than {limit} bytes.", limit=limit)
    if length.isascii() and length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > limit):
        raise refusal
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise refusal
    return bytes(body)


def strict_json(body: str | bytes) -> Any:
    """Parse JSON. Raises `ValueError` also for NaN and Infinity, which could not be sent back as JSON."""
    return json.loads(body, parse_constant=_refused, parse_float=_finite)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refused(digits)


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


class UploadMemory:
    """The memory for the files of all requests together, in bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0

    def take(self, size: int) -> None:
        """Take memory for a file. Raises `ServiceUnavailable` if there is not enough."""
        if self._held + size > self._most:
            raise ServiceUnavailable(
                "uploads", "Too many files are being uploaded at the moment. Send the file again in a few seconds."
            )
        self._held += size

    def give_back(self, size: int) -> None:
        """Give memory back."""
        self._held -= size


@dataclass(slots=True)
class FormPart:
    """A field (`filename` None) or a file of a form. Above the limit the content is dropped and only `size` grows."""

    name: str
    filename: str | None
    content_type: str | None
    limit: int
    memory: UploadMemory
    content: bytearray = field(default_factory=bytearray)
    size: int = 0

    @property
    def too_large(self) -> bool:
        """Tell if its size exceeds the limit."""
        return self.size > self.limit

    @property
    def text(self) -> str:
        """A field's value. Raises `ValidationError` for one that is too long or not UTF-8."""
        if self.too_large:
            raise PayloadTooLarge(f"The field {self.name} is longer than {self.limit} bytes.", limit=self.limit)
        try:
            return self.content.decode()
        except UnicodeDecodeError as error:
            raise ValidationError(f"The field {self.name} is not UTF-8.", field=self.name) from error

    def add(self, data: bytes) -> None:
        """Add data. Above the limit, count only its size."""
        self.size += len(data)
        if self.too_large:
            self.drop()
        else:
            self.memory.take(len(data))
            self.content += data

    def drop(self) -> None:
        """Drop the content and give its memory back."""
        self.memory.give_back(len(self.content))
        self.content = bytearray()


async def form_parts(
    request: Request, *, file_limit: int, most_parts: int, memory: UploadMemory
) -> AsyncGenerator[FormPart, None]:
    """The parts of a `multipart/form-data` body, each once it is complete. The caller closes the generator.

    A file with more than `file_limit` bytes has no content. The content of a part is dropped when the next part is
    requested. Raises `ValidationError` for a body that is not a form, a form that ends early, and more than
    `most_parts` parts. Raises `ServiceUnavailable` if there is not enough `memory`. Earlier parts were handed out.
    """
    collector = _Collector(file_limit, memory)
    try:
        async for part in _complete(request, collector, most_parts):
            yield part
            part.drop()
    finally:
        collector.drop()


async def _complete(request: Request, collector: "_Collector", most_parts: int) -> AsyncIterator[FormPart]:
    parser = _parser(request, collector)
    count = 0
    async for data in request.stream():
        try:
            parser.write(data)
        except FormParserError as error:
            raise ValidationError("The body is not a valid form: multipart/form-data.") from error
        while collector.complete:
            count += 1
            if count > most_parts:
                raise ValidationError(f"A form has at most {most_parts} parts. Send the rest in another.")
            collector.handed_out = collector.complete.popleft()
            yield collector.handed_out
    if not collector.ended:
        raise ValidationError("The form ends in the middle. Send it again.")


def _parser(request: Request, collector: "_Collector") -> MultipartParser:
    _, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary")
    if not boundary:
        raise ValidationError("The Content-Type of a form names its boundary.")
    callbacks = {name: getattr(collector, name) for name in dir(collector) if name.startswith("on_")}
    try:
        return MultipartParser(boundary, callbacks)  # type: ignore[arg-type]
    except FormParserError as error:
        raise ValidationError("The form's boundary is too long.") from error


class _Collector:
    """Collects the parts of a form, as the callbacks of its parser."""

    def __init__(self, file_limit: int, memory: UploadMemory) -> None:
        self.complete: deque[FormPart] = deque()
        self.handed_out: FormPart | None = None
        self._memory = memory
        self.ended = False
        self._file_limit = file_limit
        self._headers: dict[bytes, bytes] = {}
        self._name, self._value = bytearray(), bytearray()
        self._part: FormPart | None = None

    def on_part_begin(self) -> None:
        self._headers = {}

    def on_header_begin(self) -> None:
        self._name, self._value = bytearray(), bytearray()

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)

    def on_headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition"))
        filename = options.get(b"filename")
        kind, _ = parse_options_header(self._headers.get(b"content-type"))
        self._part = FormPart(
            header_text(options.get(b"name", b"")),
            None if filename is None else header_text(filename),
            kind.decode("latin-1") or None,
            _MOST_FIELD_BYTES if filename is None else self._file_limit,
            self._memory,
        )

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part is not None:
            self._part.add(data[start:end])

    def on_part_end(self) -> None:
        if self._part is not None:
            self.complete.append(self._part)
            self._part = None

    def on_end(self) -> None:
        self.ended = True

    def drop(self) -> None:
        """Drop all parts: the request is over."""
        for part in (self.handed_out, self._part, *self.complete):
            if part is not None:
                part.drop()
