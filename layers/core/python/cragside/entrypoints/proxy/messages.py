"""Reads the headers and bodies of HTTP messages, and what of them is forwarded."""

import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import Message, Receive, Send

from cragside.domain import hops
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.entrypoints.access import WORKSPACE_HEADERS
from cragside.entrypoints.http.request_bodies import bounded, strict_json
from cragside.entrypoints.request_headers import CONTEXT_HEADER, MEMORY_HEADER, RAG_HEADER, USER_HEADER
from cragside.entrypoints.runs import ClientGone

Header = tuple[bytes, bytes]

PERSONA_HEADER = b"x-rag-persona"
HOPS_HEADER = hops.HEADER.encode()

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# Our server answers the client's `Expect`, and `Host` must name the upstream. The others are meant for cragside, not
# for Ollama, whether or not the prompt has the command.
_OWN = frozenset({PERSONA_HEADER, MEMORY_HEADER, RAG_HEADER, CONTEXT_HEADER, USER_HEADER, *WORKSPACE_HEADERS})
_NOT_FORWARDED = _HOP_BY_HOP | _OWN | {b"host", b"expect", HOPS_HEADER}
# `Connection` may not remove the length by which the body was read.
_FRAMING = frozenset({b"content-length"})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HEADER = b"content-encoding"
_GZIP = frozenset({b"gzip", b"x-gzip"})
_READABLE = _GZIP | {b"deflate"}
_LONGEST_PIECE = 64 * 1024  # a thousand times as much could follow from the same bytes
# gzip's may follow each other. The rest of the body is copied for each.
_MOST_MEMBERS = 100


def request_headers(headers: Sequence[Header], dropped: Collection[bytes] = ()) -> list[Header]:
    """A request's headers (lower-case names) to forward to Ollama, without those in `dropped`."""
    return _kept(headers, _NOT_FORWARDED, dropped)


def response_headers(headers: Sequence[Header], status: int) -> list[Header]:
    """A response's headers (lower-case names) to forward to the client."""
    # A 304 may state the length of a body that it does not have. Our server would wait for that body.
    return _kept(headers, _HOP_BY_HOP, (b"content-length",) if status in (204, 304) else ())


def _kept(headers: Sequence[Header], connection_only: frozenset[bytes], dropped: Collection[bytes]) -> list[Header]:
    leaving = connection_only.union(dropped) if dropped else connection_only
    for name, value in headers:
        if name == b"connection":
            leaving |= {token.strip().lower() for token in value.split(b",")} - _FRAMING
    return [header for header in headers if header[0] not in leaving]


async def send_whole(send: Send, status: int, headers: Sequence[Header], body: bytes = b"") -> None:
    """Send a response whose whole body is known."""
    length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})


def hops_of(headers: Sequence[Header]) -> str:
    """The marks of the cragsides that a request has passed through."""
    return ", ".join([value.decode("latin-1") for name, value in headers if name == HOPS_HEADER])


def value_of(headers: Sequence[Header], name: bytes) -> bytes | None:
    """The first value of a header, or None. All names are in lower case."""
    for key, value in headers:  # a generator would cost twice as much
        if key == name:
            return value
    return None


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
        request = strict_json(text)
        if "\\ud" in text.lower():  # Go reads half a surrogate pair as U+FFFD
            request = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(request, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return request if isinstance(request, dict) else None


def parsed_if_bounded(body: bytes) -> dict[str, Any] | None:
    """Parse a body as `parsed` does. Returns None also for one that would take too long to parse."""
    try:
        return parsed(bounded(body))
    except ValidationError:
        return None


def coding_of(headers: Iterable[Header]) -> bytes:
    """Return the content coding of a body in lower case, several joined by commas; empty for none."""
    given = [coding for name, value in headers if name.lower() == _HEADER for coding in value.lower().split(b",")]
    return b",".join([coding for each in given if (coding := each.strip()) not in (b"", b"identity")])


def is_readable(coding: bytes) -> bool:
    """Tell if `decoded` and `Decoder` can read the coding."""
    return not coding or coding in _READABLE


def decoded(data: bytes, coding: bytes, limit: int) -> bytes | None:
    """The body without its coding. None if that is unknown, broken, cut off, or hides more than `limit` bytes."""
    if not coding:
        return data
    if coding not in _READABLE:
        return None
    decoder, whole = Decoder(coding), bytearray()
    try:
        for piece in decoder.pieces(data):
            whole += piece
            if len(whole) > limit:
                return None
    except zlib.error:
        return None
    return bytes(whole) if decoder.ended else None


class Decoder:
    """Decodes a body piece by piece."""

    def __init__(self, coding: bytes) -> None:
        self._coding = coding
        self._stream: zlib._Decompress | None = None
        self._members = 0

    @property
    def ended(self) -> bool:
        """Tell if the body is complete, if nothing follows."""
        return self._stream is None or self._stream.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decode these bytes in short pieces. Raise `zlib.error` for what is not in the coding."""
        # zlib copies what it has not used yet, at each step.
        for start in range(0, len(data), _LONGEST_PIECE):
            rest = data[start : start + _LONGEST_PIECE]
            while rest:
                if self._stream is None or self._stream.eof:
                    self._members += 1
                    if self._members > _MOST_MEMBERS:
                        raise zlib.error("too many members")
                    self._stream = zlib.decompressobj(self._window(rest))
                piece = self._stream.decompress(rest, _LONGEST_PIECE)
                rest = self._stream.unconsumed_tail or self._stream.unused_data
                if piece:
                    yield piece

    def _window(self, data: bytes) -> int:
        if self._coding in _GZIP:
            return zlib.MAX_WBITS | 16
        # Some send deflate's bare stream. The frame that HTTP asks for begins with deflate's number in zlib, 8.
        return zlib.MAX_WBITS if data[0] & 15 == 8 else -zlib.MAX_WBITS


class Unpacked:
    """Wraps `send`: an answer in gzip, deflate or `identity` is passed on decoded. Other codings pass unchanged."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._decoder: Decoder | None = None

    async def __call__(self, message: Message) -> None:
        """ASGI's `send`. Raises `ServiceUnavailable("ollama", ...)` for what is not in the coding that it claims."""
        if message["type"] == "http.response.start":
            await self._send(self._begun(message))
            return
        decoder, more = self._decoder, message.get("more_body", False)
        if decoder is None:
            await self._send(message)
            return
        try:
            for piece in decoder.pieces(message.get("body", b"")):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        except zlib.error as error:
            raise ServiceUnavailable("ollama", "the answer is not in its content coding") from error
        if not more:
            if not decoder.ended:
                raise ServiceUnavailable("ollama", "the answer ends within its content coding")
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _begun(self, message: Message) -> Message:
        coding = coding_of(message["headers"])
        if not is_readable(coding):
            return message
        removed = {_HEADER}
        if coding:
            self._decoder = Decoder(coding)
            removed.add(b"content-length")
        return {**message, "headers": [each for each in message["headers"] if each[0].lower() not in removed]}
