"""Selects the headers to forward. Some belong to a single connection (RFC 9110, section 7.6.1)."""

from collections.abc import Collection, Sequence

from starlette.types import Send

from cragside.domain import hops
from cragside.entrypoints.access import WORKSPACE_HEADERS
from cragside.entrypoints.end_user_in_request import USER_HEADER
from cragside.entrypoints.rag_headers import CONTEXT_HEADER, MEMORY_HEADER, RAG_HEADER

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


def request_headers(headers: Sequence[Header], dropped: Collection[bytes] = ()) -> list[Header]:
    """A request's headers (lower-case names) to forward to Ollama, without those in `dropped`."""
    return _kept(headers, _NOT_FORWARDED, dropped)


def response_headers(headers: Sequence[Header], status: int) -> list[Header]:
    """A response's headers to forward to the client, with unchanged names."""
    # A 304 may state the length of a body that it does not have. Our server would wait for that body.
    return _kept(headers, _HOP_BY_HOP, (b"content-length",) if status in (204, 304) else ())


def _kept(headers: Sequence[Header], connection_only: frozenset[bytes], dropped: Collection[bytes]) -> list[Header]:
    named: set[bytes] = set(dropped)
    for name, value in headers:
        if name.lower() == b"connection":
            named |= {token.strip().lower() for token in value.split(b",")} - _FRAMING
    leaving = connection_only.union(named) if named else connection_only
    return [header for header in headers if header[0].lower() not in leaving]


async def send_whole(send: Send, status: int, headers: Sequence[Header], body: bytes = b"") -> None:
    """Send a response that is known whole."""
    length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})


def hops_of(headers: Sequence[Header]) -> str:
    """The marks of the cragsides that a request has passed through."""
    return ", ".join(value.decode("latin-1") for name, value in headers if name.lower() == HOPS_HEADER)


def value_of(headers: Sequence[Header], name: bytes) -> bytes | None:
    """The first value of a header, or None. `name` in lower case."""
    for key, value in headers:  # a generator would cost twice as much
        if key.lower() == name:
            return value
    return None
