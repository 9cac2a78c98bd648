"""Which headers travel on and which belong to one connection (RFC 9110, section 7.6.1)."""

from collections.abc import Collection, Sequence

from cragside.entrypoints.access import WORKSPACE_HEADERS
from cragside.entrypoints.memory_header import MEMORY_HEADER

Header = tuple[bytes, bytes]

PERSONA_HEADER = b"x-rag-persona"

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
# The client's `Expect` is answered by our server; `Host` is the upstream's own name. The rest is said to us: whose
# workspace it is, for one, is no business of Ollama's, whether or not the prompt has the command.
_NOT_FORWARDED = _HOP_BY_HOP | {b"host", b"expect", PERSONA_HEADER, MEMORY_HEADER, *WORKSPACE_HEADERS}
# What `Connection` may not take away: the length that the body was read by.
_FRAMING = frozenset({b"content-length"})


def for_upstream(headers: Sequence[Header], dropped: Collection[bytes] = ()) -> list[Header]:
    """A request's headers (lower-case names) that go on to Ollama, without those in `dropped`."""
    return _kept(headers, _NOT_FORWARDED, dropped)


def for_client(headers: Sequence[Header], status: int) -> list[Header]:
    """A response's headers, names as they came, that go back to the client."""
    # A 304 may state the length of the body that it does not carry; our server would wait for that body.
    return _kept(headers, _HOP_BY_HOP, (b"content-length",) if status in (204, 304) else ())


def _kept(headers: Sequence[Header], connection_only: frozenset[bytes], dropped: Collection[bytes]) -> list[Header]:
    named: set[bytes] = set(dropped)
    for name, value in headers:
        if name.lower() == b"connection":
            named |= {token.strip().lower() for token in value.split(b",")} - _FRAMING
    leaving = connection_only.union(named) if named else connection_only
    return [header for header in headers if header[0].lower() not in leaving]


def value_of(headers: Sequence[Header], name: bytes) -> bytes | None:
    """The first value of a header, or None. `name` in lower case."""
    return next((value for key, value in headers if key.lower() == name), None)
