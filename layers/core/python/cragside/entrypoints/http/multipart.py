"""Reads the files of a form one after the other, so that at most one of them is in memory."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from cragside.domain.errors import PayloadTooLarge, ServiceUnavailable, ValidationError

_MOST_FIELD_BYTES = 64 * 1024


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
        """Whether its size exceeds the limit."""
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
    """The parser's callbacks."""

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
            _text(options.get(b"name", b"")),
            None if filename is None else _text(filename),
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


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
