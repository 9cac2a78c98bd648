"""Passes one exchange through: the client's bytes to Ollama, Ollama's bytes to the client."""

import asyncio

from starlette.types import Receive

from cragside.domain import hops
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.forward_proxy import way_to
from cragside.entrypoints.proxy.messages import HOPS_HEADER, request_headers, response_headers, value_of
from cragside.entrypoints.proxy.prompts import Call
from cragside.entrypoints.proxy.routes import NAMING_ROUTES, ROUTES, is_post_to
from cragside.entrypoints.proxy.upstream import Upstream, UpstreamConnection
from cragside.entrypoints.runs import ClientGone, until_gone

# Watching for a client that leaves costs a task, so requests that take fewer seconds than this are not watched.
_WATCH_AFTER = 0.02
# Headers of the client's body, which one of ours does not have.
_OF_BODIES = frozenset({b"content-length", b"content-encoding"})
# RFC 9110, section 9.2.2
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


class BrokenOff(Exception):
    """Ollama broke off during an answer. The client's connection must be cut, without a regular end of the answer."""


async def relay(upstream: Upstream, call: Call) -> None:
    """Pass a request on and its answer back, each piece as it arrives.

    Raises `ClientGone`. If Ollama fails, raises `ServiceUnavailable("ollama", ...)` before anything is sent to the
    client, and `BrokenOff` after that. A host that refuses the key of cragside's own raises
    `ServiceUnavailable("model_host", ...)`. A kept connection that the host closed without an answer is replaced once.
    """
    body, method = call.body, call.scope["method"]
    chunked = not body.complete and value_of(call.headers, b"content-length") is None
    head = _head(upstream, await upstream.authorization(), call)
    begun = head + (_chunk(body.data) if chunked else body.data)

    async def exchange(connection: UpstreamConnection) -> None:
        guard = _Guard(connection, call.receive, None if body.complete else chunked)
        try:
            connection.begin(begun, body_sent=body.complete, bodiless=method == "HEAD")
            await connection.response()
            _refuse(upstream, connection.status)
            headers = [*response_headers(connection.headers, connection.status), *call.added]
            await call.send({"type": "http.response.start", "status": connection.status, "headers": headers})
            try:
                more = True
                while more:
                    data = await connection.read()
                    more = not connection.finished
                    await call.send({"type": "http.response.body", "body": data, "more_body": more})
            except ServiceUnavailable as error:
                raise BrokenOff(error.message) from error
        finally:
            guard.dismiss()
            upstream.release(connection)

    connection = await upstream.connection()
    try:
        await exchange(connection)
    except ServiceUnavailable:
        # Prompts and embeddings change nothing at the host. Other POSTs, such as files of OpenAI's API, may make
        # things, and the host may have done what was asked before it closed the connection.
        repeatable = method in _IDEMPOTENT or is_post_to(ROUTES | NAMING_ROUTES, call.scope)
        if not (connection.was_stale and body.complete and repeatable):
            raise
        await exchange(await upstream.connection(new=True))


def _refuse(upstream: Upstream, status: int) -> None:
    """Raise `ServiceUnavailable` for an answer that is not the client's."""
    if status > 599:
        raise ServiceUnavailable("ollama", "its answer has a status that HTTP does not know")
    if status == 401 and upstream.keyed:
        # The key is not the client's, who would take the answer for one on its token. The answer may quote the key.
        raise ServiceUnavailable("model_host", "The model host refuses the key that cragside has for it.")
    if status == 407 and upstream.relayed:
        raise ServiceUnavailable("ollama", f"407{way_to(upstream.address)}: correct its credentials")


class _Guard:
    """Sends the rest of the client's body, and aborts the exchange if the client leaves.

    `chunked` tells how to frame the rest of the body; None if there is no rest.
    """

    def __init__(self, connection: UpstreamConnection, receive: Receive, chunked: bool | None) -> None:
        self._connection = connection
        self._receive = receive
        self._pending: asyncio.TimerHandle | asyncio.Task[None] = (
            asyncio.get_running_loop().call_later(_WATCH_AFTER, self._watch)
            if chunked is None
            else asyncio.create_task(self._upload(chunked))
        )

    def dismiss(self) -> None:
        """Stop, because the exchange is over."""
        self._pending.cancel()

    def _watch(self) -> None:
        self._pending = asyncio.create_task(self._until_gone())

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
            await self._connection.write(_chunk(data, last=not more) if chunked else data, last=not more)
        await self._until_gone()


def _chunk(data: bytes, *, last: bool = False) -> bytes:
    framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
    return framed + b"0\r\n\r\n" if last else framed


def _head(upstream: Upstream, authorization: bytes | None, call: Call) -> bytes:
    scope, body, dropped = call.scope, call.body, {*call.grant.headers}
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    if not path.startswith(b"/") and path != b"*":
        raise ValidationError("The request's path must begin with a slash.")
    query: bytes = scope.get("query_string") or b""
    target = b"%b%b?%b" % (upstream.path, path, query) if query else upstream.path + path
    lines = [b"%b %b HTTP/1.1" % (scope["method"].encode(), target), b"host: " + upstream.authority.encode()]
    if authorization is not None:
        dropped |= {b"authorization", b"x-api-key"}  # clients of Anthropic's API send their key as the latter
        lines.append(b"authorization: " + authorization)
    if call.replaced:
        dropped |= _OF_BODIES
    headers = request_headers(call.headers, dropped)
    lines += [b"%b: %b" % header for header in headers]
    lines.append(b"%b: %b" % (HOPS_HEADER, hops.marked().encode()))
    lines += [f"{name}: {value}".encode() for name, value in upstream.proxy_headers.items()]
    if value_of(headers, b"content-length") is None:
        if not body.complete:
            lines.append(b"transfer-encoding: chunked")
        elif body.data or value_of(call.headers, b"transfer-encoding") is not None:
            lines.append(b"content-length: %d" % len(body.data))
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1 or target.count(b" "):
        raise ValidationError("A header has a line break, or the path has a blank or a line break.")
    return head + b"\r\n\r\n"
