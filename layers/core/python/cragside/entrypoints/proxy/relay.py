"""Passes one exchange through: the client's bytes to Ollama, Ollama's bytes to the client."""

import asyncio
from collections.abc import Collection, Sequence

from starlette.types import Receive, Scope, Send

from cragside.domain import hops
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.forward_proxy import way_to
from cragside.entrypoints.proxy.headers import HOPS_HEADER, Header, request_headers, response_headers, value_of
from cragside.entrypoints.proxy.model_names import NAMING_ROUTES
from cragside.entrypoints.proxy.request_body import Body
from cragside.entrypoints.proxy.shapes import ROUTES
from cragside.entrypoints.proxy.upstream import Upstream
from cragside.entrypoints.proxy.upstream_connection import UpstreamConnection
from cragside.entrypoints.runs import ClientGone, until_gone

# Watching for a client that leaves costs a task, so requests that take fewer seconds than this are not watched.
_WATCH_AFTER = 0.02
# Headers of the client's body, which one of ours does not have.
_OF_BODIES = frozenset({b"content-length", b"content-encoding"})
# RFC 9110, section 9.2.2
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class BrokenOff(Exception):
    """Ollama broke off during an answer. The client's connection must be cut, without a regular end of the answer."""


async def relay(
    upstream: Upstream,
    scope: Scope,
    receive: Receive,
    send: Send,
    body: Body,
    *,
    dropped: Collection[bytes] = (),
    replaced: bool = False,
    added: Sequence[Header] = (),
) -> None:
    """Pass a request on and its answer back, each piece as it arrives.

    `dropped` names request headers that are not forwarded, `replaced` tells that `body` is not the client's, and
    `added` has further headers for the client. Raises `ClientGone`. If Ollama fails, raises
    `ServiceUnavailable("ollama", ...)` before anything is sent to the client, and `BrokenOff` after that. A host that
    refuses the key of cragside's own raises `ServiceUnavailable("model_host", ...)`. A kept connection that the host
    closed without an answer is replaced once.
    """
    head = _head(upstream, await upstream.authorization(), scope, body, dropped, replaced)

    async def on(connection: UpstreamConnection) -> None:
        guard = _Guard(connection, receive)
        try:
            await _exchange(upstream, connection, guard, scope, send, head, body, added)
        finally:
            guard.dismiss()
            upstream.release(connection)

    connection = await upstream.connection()
    try:
        await on(connection)
    except ServiceUnavailable:
        if not (connection.was_stale and body.complete and _may_be_repeated(scope)):
            raise
        await on(await upstream.connection(new=True))


def _may_be_repeated(scope: Scope) -> bool:
    """Tell if a request may reach the host twice, which may have done the first before it closed the connection.

    Prompts and embeddings change nothing at the host. Other POSTs, such as files of OpenAI's API, may make things.
    """
    return scope["method"] in _IDEMPOTENT or (scope["method"] == "POST" and scope["path"] in ROUTES | NAMING_ROUTES)


async def _exchange(
    upstream: Upstream,
    connection: UpstreamConnection,
    guard: "_Guard",
    scope: Scope,
    send: Send,
    head: bytes,
    body: Body,
    added: Sequence[Header],
) -> None:
    chunked = not body.complete and value_of(scope["headers"], b"content-length") is None
    connection.begin(
        head + (_chunk(body.data) if chunked else body.data),
        body_sent=body.complete,
        bodiless=scope["method"] == "HEAD",
    )
    guard.start(None if body.complete else chunked)
    await connection.response()
    if connection.status > 599:
        raise ServiceUnavailable("ollama", "its answer has a status that HTTP does not know")
    if connection.status == 401 and upstream.keyed:
        # The key is not the client's, who would take the answer for one on its token. The answer may quote the key.
        raise ServiceUnavailable("model_host", "The model host refuses the key that cragside has for it.")
    if connection.status == 407 and upstream.relayed:
        raise ServiceUnavailable("ollama", f"407{way_to(upstream.address)}: correct its credentials")
    headers = response_headers(connection.headers, connection.status)
    await send({"type": "http.response.start", "status": connection.status, "headers": [*headers, *added]})
    try:
        more = True
        while more:
            data = await connection.read()
            more = not connection.finished
            await send({"type": "http.response.body", "body": data, "more_body": more})
    except ServiceUnavailable as error:
        raise BrokenOff(error.message) from error


class _Guard:
    """Sends the rest of the client's body, and aborts the exchange if the client leaves."""

    def __init__(self, connection: UpstreamConnection, receive: Receive) -> None:
        self._connection = connection
        self._receive = receive
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, chunked: bool | None) -> None:
        """Start. `chunked` tells how to frame the rest of the body; None if there is no rest."""
        if chunked is None:
            self._timer = asyncio.get_running_loop().call_later(_WATCH_AFTER, self._watch)
        else:
            self._task = asyncio.create_task(self._upload(chunked))

    def dismiss(self) -> None:
        """Stop, because the exchange is over."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _watch(self) -> None:
        self._task = asyncio.create_task(self._until_gone())

    async def _until_gone(self) -> None:
        await until_gone(self._receive)
        self._connection.abort(ClientGone())

    async def _upload(self, chunked: bool) -> None:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._connection.abort(ClientGone())
                return
            data, more = message.get("body", b""), message.get("more_body", False)
            framed = _chunk(data, last=not more) if chunked else data
            await self._connection.write(framed, last=not more)
        await self._until_gone()


def _chunk(data: bytes, *, last: bool = False) -> bytes:
    framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
    return framed + b"0\r\n\r\n" if last else framed


def _head(
    upstream: Upstream,
    authorization: bytes | None,
    scope: Scope,
    body: Body,
    given: Collection[bytes],
    replaced: bool,
) -> bytes:
    dropped = frozenset(given)
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    if not path.startswith(b"/") and path != b"*":
        raise ValidationError("The request's path must begin with a slash.")
    query: bytes = scope.get("query_string") or b""
    target = b"%b%b?%b" % (upstream.path, path, query) if query else upstream.path + path
    lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target), b"host: " + upstream.authority.encode()]
    if authorization is not None:
        dropped |= {b"authorization", b"x-api-key"}  # clients of Anthropic's API send their key as the latter
        lines.append(b"authorization: " + authorization)
    headers = request_headers(scope["headers"], dropped | _OF_BODIES if replaced else dropped)
    lines += [b"%b: %b" % header for header in headers]
    lines.append(b"%b: %b" % (HOPS_HEADER, hops.marked().encode()))
    lines += [f"{name}: {value}".encode() for name, value in upstream.proxy_headers.items()]
    if not body.complete:
        if value_of(headers, b"content-length") is None:
            lines.append(b"transfer-encoding: chunked")
    elif value_of(headers, b"content-length") is None and (body.data or _is_framed(scope)):
        lines.append(b"content-length: %d" % len(body.data))
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1 or target.count(b" "):
        raise ValidationError("A header has a line break, or the path has a blank or a line break.")
    return head + b"\r\n\r\n"


def _is_framed(scope: Scope) -> bool:
    return value_of(scope["headers"], b"transfer-encoding") is not None
