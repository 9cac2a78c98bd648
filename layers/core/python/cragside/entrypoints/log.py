"""Lines for the operator: errors, stack traces, and the log of `cragside serve` and of its worker."""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, TextIO
from urllib.parse import urlsplit

from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.domain.hops import request_id

_MOST_CAUSES = 5

_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def trace_of(error: BaseException | None) -> str:
    """Return the stack traces and types of an exception and its causes, without messages, which may quote a request."""
    shown: list[str] = []
    while error is not None and len(shown) < _MOST_CAUSES:
        shown.append("".join(traceback.format_tb(error.__traceback__)) + type(error).__qualname__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\ncaused by\n".join(shown)


def message_of(error: Exception) -> str:
    """Return one line for a person. Only our own messages and the system's are shown: others may contain secrets."""
    if isinstance(error, ServiceUnavailable):
        message = error.message_with_place
        names_it = message.lower().startswith(f"the {error.component.replace('_', ' ')} ")
        return one_line(message if names_it else f"{error.component}: {message}")
    if isinstance(error, CragsideError):
        return one_line(error.message_with_place)
    if isinstance(error, OSError) and error.strerror:
        return one_line(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return f"something inside failed ({type(error).__name__}); cragside --debug shows where"


def address_of(url: str | None) -> str:
    """Return an address without its credentials; "" if there is none."""
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if url else ""


def one_line(text: str) -> str:
    """Return a text without line breaks and repeated blanks."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Event:
    """A message with fields: a line of text is `text`, a line of JSON has the fields as well."""

    text: str
    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text


class TextFormatter(logging.Formatter):
    """Time, level, message and the request's id. A message is always one line; only stack traces are several."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        message = _printable(record.getMessage())
        identified = f" request={request_id.get()}" if request_id.get() else ""
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{_at(record)} {record.levelname} {message}{identified}{trace}"

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 (logging's name)
        """The trace without messages."""
        return trace_of(ei[1])


class JsonFormatter(logging.Formatter):
    """An object of JSON with `at`, `level`, `logger`, `message`, `request_id`, and the fields of an `Event`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        entry: dict[str, Any] = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id.get():
            entry["request_id"] = request_id.get()
        if isinstance(record.msg, Event):
            entry.update(record.msg.fields)
        if record.exc_info:
            entry["trace"] = trace_of(record.exc_info[1])
        return json.dumps(entry)


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what is standard error now, which tests and hosts replace."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # the base class has an attribute
        """Standard error."""
        return sys.stderr


@contextmanager
def logged(level: str, form: Literal["text", "json"]) -> Iterator[None]:
    """Write our messages from `level` on to standard error while the block is open. Libraries write warnings only.

    Some libraries' messages of lower levels have addresses with questions in them.
    """
    handler = _StandardError()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root, ours = logging.getLogger(), logging.getLogger("cragside")
    previous = ours.level
    root.addHandler(handler)
    ours.setLevel(level.upper())
    try:
        yield
    finally:
        ours.setLevel(previous)
        root.removeHandler(handler)


def _at(record: logging.LogRecord) -> str:
    second = int(record.created)
    return f"{_second(second)}.{int((record.created - second) * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
