"""Reads bodies in the content codings gzip and deflate (RFC 9110, section 8.4). `identity` says that there is none."""

import zlib
from collections.abc import Iterable, Iterator

from starlette.types import Message, Send

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.proxy.headers import Header

_HEADER = b"content-encoding"
_GZIP = frozenset({b"gzip", b"x-gzip"})
_READABLE = _GZIP | {b"deflate"}
_LONGEST_PIECE = 64 * 1024  # a thousand times as much could follow from the same bytes

# gzip's may follow each other. The rest of the body is copied for each.
_MOST_MEMBERS = 100


def coding_of(headers: Iterable[Header]) -> bytes:
    """The coding of a body, in lower case. Empty for none; several are joined by commas."""
    given = (coding for name, value in headers if name.lower() == _HEADER for coding in value.lower().split(b","))
    return b",".join(coding for each in given if (coding := each.strip()) not in (b"", b"identity"))


def is_readable(coding: bytes) -> bool:
    """Tell if `decoded` and `Decoder` know the coding."""
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
    """Reads a body in a coding, piece by piece."""

    def __init__(self, coding: bytes) -> None:
        self._coding = coding
        self._stream: zlib._Decompress | None = None
        self._members = 0

    @property
    def ended(self) -> bool:
        """Tell if the body may end here."""
        return self._stream is None or self._stream.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decode these bytes in short pieces. Raise `zlib.error` for what is not in the coding."""
        # zlib copies what it has not used yet, at each step.
        for start in range(0, len(data), _LONGEST_PIECE):
            yield from self._decoded(data[start : start + _LONGEST_PIECE])

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None or self._stream.eof:
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise zlib.error("too many members")
                self._stream = zlib.decompressobj(self._window(data))
            piece = self._stream.decompress(data, _LONGEST_PIECE)
            data = self._stream.unconsumed_tail or self._stream.unused_data
            if piece:
                yield piece

    def _window(self, data: bytes) -> int:
        if self._coding in _GZIP:
            return zlib.MAX_WBITS | 16
        # Some send deflate's bare stream. The frame that HTTP asks for begins with deflate's number in zlib, 8.
        return zlib.MAX_WBITS if data[0] & 15 == 8 else -zlib.MAX_WBITS


class Unpacked:
    """Replaces `send`: passes an answer on without gzip, deflate or `identity`. Other codings pass unchanged."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._decoder: Decoder | None = None

    async def __call__(self, message: Message) -> None:
        """ASGI's `send`. Raises `ServiceUnavailable("ollama", ...)` for what is not in the coding that it claims."""
        if message["type"] == "http.response.start":
            await self._send(self._begun(message))
        elif self._decoder is None:
            await self._send(message)
        else:
            await self._unpack(self._decoder, message)

    def _begun(self, message: Message) -> Message:
        coding = coding_of(message["headers"])
        if not is_readable(coding):
            return message
        removed = {_HEADER}
        if coding:
            self._decoder = Decoder(coding)
            removed.add(b"content-length")
        return {**message, "headers": [each for each in message["headers"] if each[0].lower() not in removed]}

    async def _unpack(self, decoder: Decoder, message: Message) -> None:
        more = message.get("more_body", False)
        try:
            for piece in decoder.pieces(message.get("body", b"")):
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        except zlib.error as error:
            raise ServiceUnavailable("ollama", "the answer is not in its content coding") from error
        if not more:
            if not decoder.ended:
                raise ServiceUnavailable("ollama", "the answer ends within its content coding")
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
