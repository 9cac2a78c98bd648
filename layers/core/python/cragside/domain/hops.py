"""Gives requests an id, and finds those that come back to the cragside that sent them.

Each cragside adds a mark of its own to the header of every request that it sends to a model host, behind the marks that
came with the request that it answers.
"""

import re
import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

HEADER = "x-cragside-hops"
# Forked workers share it, as it is made before they are.
_OWN_MARK = secrets.token_hex(8)
# A loop through servers of many processes may be long before a mark comes twice.
_MOST_HOPS = 8
_MARK = re.compile(r"[0-9a-f]{16}")

_travelled: ContextVar[tuple[str, ...]] = ContextVar("travelled", default=())


def is_loop(header: str) -> bool:
    """Tell if a request with this header has been here before, or has passed through too many others."""
    marks = _marks(header)
    return _OWN_MARK in marks or len(marks) > _MOST_HOPS


@contextmanager
def answering(header: str) -> Iterator[None]:
    """Answer a request with this header: what is sent meanwhile carries its marks on."""
    before = _travelled.set(_marks(header))
    try:
        yield
    finally:
        _travelled.reset(before)


def marked() -> str:
    """Return the header's value for a request to a model host."""
    return ", ".join((*_travelled.get(), _OWN_MARK))


def _marks(header: str) -> tuple[str, ...]:
    if not header:  # as in nearly all requests
        return ()
    return tuple(mark for part in header.split(",") if _MARK.fullmatch(mark := part.strip()))


_SAFE = frozenset(string.ascii_letters + string.digits + "-._=")
_LONGEST = 128

request_id: ContextVar[str] = ContextVar("request_id", default="")


def plain_id(given: object) -> str:
    """Give the id back if it is short and plain, else ""."""
    fits = isinstance(given, str) and len(given) <= _LONGEST and _SAFE.issuperset(given)
    return str(given) if fits else ""
