"""The id of the request that this task works for, for logs here and in databases."""

import string
from contextvars import ContextVar

_SAFE = frozenset(string.ascii_letters + string.digits + "-._=")
_LONGEST = 128

request_id: ContextVar[str] = ContextVar("request_id", default="")


def plain_id(given: object) -> str:
    """Give the id back if it is short and plain, else ""."""
    fits = isinstance(given, str) and len(given) <= _LONGEST and _SAFE.issuperset(given)
    return str(given) if fits else ""
