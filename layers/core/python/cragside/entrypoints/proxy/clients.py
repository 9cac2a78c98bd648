"""Keeps the connections of clients, and limits how long a client may keep the server waiting.

uvicorn has a time-out for idle connections only. It waits forever for a client that does not complete its request, and
each such connection takes a descriptor."""

import asyncio
import json
import select
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Literal, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from cragside.entrypoints.http.errors import RETRY_AFTER_SECONDS
from cragside.entrypoints.proxy.errors import error_body, send_error, status_of
from cragside.entrypoints.proxy.observed import REQUEST_ID, id_of
from cragside.ports.clock import SYSTEM_CLOCK, Clock

_HEALTH = "/healthz"
_FULL = f"The server has as many requests as it can hold. Try again in {RETRY_AFTER_SECONDS} seconds."
# The most requests that a client may send before it reads their answers.
_MOST_PIPELINED = 64


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits for clients' connections. Times are in seconds.

    A server holds `most` connections, `spare` of them only for `/healthz`. A request's head must be complete within
    `head_seconds` and has at most `head_bytes` and `most_headers`. Of its body, at least `body_bytes` must arrive in
    each `body_seconds`. A client may be idle for `keep_alive_seconds` after an answer: chat clients pause for longer
    than uvicorn's 5 seconds. It may read nothing of an answer for `stall_seconds`, and may keep a closed connection
    open for `close_seconds`. One that has closed its own side counts as gone if its answer does not begin within
    `half_closed_seconds`.
    """

    most: int
    spare: int = 32
    head_seconds: float = 15
    head_bytes: int = 64 * 1024
    most_headers: int = 200
    body_seconds: float = 30
    body_bytes: int = 4096
    keep_alive_seconds: float = 75
    stall_seconds: float = 120
    close_seconds: float = 15
    half_closed_seconds: float = 2
    check_seconds: float = 1

    @property
    def too_large(self) -> str:
        """Tell a client that the head of its request is too large."""
        return (
            f"A request's head has at most {self.head_bytes:,} bytes and {self.most_headers} headers. "
            "Send fewer or shorter headers."
        )


class Clients:
    """The connections of one process."""

    def __init__(
        self,
        limits: ConnectionLimits,
        clock: Clock = SYSTEM_CLOCK,
        observe: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    ) -> None:
        self.limits = limits
        self.clock = clock
        # Wraps what answers requests that the application does not get.
        self.observe = observe
        # Connections without a request in process, the longest idle first.
        self._idle: dict[ClientConnection, None] = {}
        self._busy: set[ClientConnection] = set()
        # Refused connections, whose clients may still read the reason.
        self._refused: dict[ClientConnection, None] = {}

    @property
    def full(self) -> bool:
        """Tell if there are too many requests. `/healthz` is answered even then."""
        return len(self._busy) > self.limits.most - min(self.limits.spare, self.limits.most // 4)

    def idle(self, connection: "ClientConnection") -> None:
        """Note that a client has connected, or that all its requests are answered. Idle connections may be dropped."""
        self._busy.discard(connection)
        self._idle[connection] = None
        self._make_room()

    def refused(self, connection: "ClientConnection") -> None:
        """Note that a client was refused. Its connection is among the first to be dropped."""
        self.gone(connection)
        self._refused[connection] = None
        self._make_room()

    def _make_room(self) -> None:
        """Drop surplus connections, except those whose request has arrived and waits to be read.

        Many connections may arrive at once with their requests. Each of these gets an answer, even if it is a refusal.
        At most there are twice as many connections as allowed, for which there are enough descriptors.
        """
        excess = len(self._refused) + len(self._idle) + len(self._busy) - self.limits.most
        if excess <= 0:
            return
        there = [*self._refused, *self._idle]
        for connection in islice((each for each in there if not each.has_spoken), excess):
            connection.drop()
        if len(self._refused) + len(self._idle) + len(self._busy) > 2 * self.limits.most:
            there[0].drop()

    def busy(self, connection: "ClientConnection") -> None:
        """Note that a client has sent the head of a request."""
        self._idle.pop(connection, None)
        self._busy.add(connection)

    def gone(self, connection: "ClientConnection") -> None:
        """Note that a client has left."""
        self._idle.pop(connection, None)
        self._refused.pop(connection, None)
        self._busy.discard(connection)

    def check(self) -> None:
        """End the connections of clients that are too slow. Call it regularly."""
        now = self.clock.monotonic()
        for connection in [*self._refused, *self._idle, *self._busy]:
            connection.check(now)


async def answer_and_end(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Have `app` answer, and end the answer as its client reads it.

    For a client of HTTP/1.0 an answer without a length ends with the connection, and there are no chunks. A client
    whose request has not come whole is told that its connection ends behind the answer: what it sends is no next
    request, and a client that waits for `100 Continue` sends no body at all.
    """
    cycle: RequestResponseCycle = cast(Any, send).__self__
    unframed = scope["http_version"] == "1.0"
    if not unframed and not cycle.more_body:  # as nearly all requests
        await app(scope, receive, send)
        return
    if unframed:
        cycle.chunked_encoding = False

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            if cycle.more_body:
                cycle.keep_alive = False
        elif unframed:
            # uvicorn counts what is left of a length.
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    await app(scope, receive, sending)


class AnswerTransport:
    """Writes an answer to the transport of its connection, and calls `end` in place of its `close`.

    What is written first, the head as a rule, is held until the next piece, at most until the event loop's next turn:
    a call to the system costs as much as the rest of a piece's way.
    """

    def __init__(self, transport: Any, end: Callable[[], None]) -> None:
        self._transport = transport
        self._end = end
        self._held = b""
        self.is_closing = transport.is_closing
        self.write: Callable[[bytes], None] = self._hold

    def close(self) -> None:
        """End the answer. The connection may live on."""
        self._release()
        self._end()

    def _hold(self, data: bytes) -> None:
        self._held, self.write = data, self._join
        asyncio.get_running_loop().call_soon(self._release)

    def _join(self, data: bytes) -> None:
        held, self._held, self.write = self._held, b"", self._transport.write
        self._transport.write(held + data)

    def _release(self) -> None:
        if self._held and not self.is_closing():
            self._join(b"")


class ClientConnection(HttpToolsProtocol):
    """uvicorn's protocol with limits for clients.

    The answer to a complete request may take any time: models think for minutes, and streams may run for hours.
    """

    def __init__(self, *arguments: Any, clients: Clients, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._clients = clients
        self._limits = clients.limits
        self._stage: Literal["none", "head", "body"] = "none"
        # The start of the stage, or of the current period within a body.
        self._since = self._clients.clock.monotonic()
        self._body_bytes = 0
        # Bytes since the last sign of progress.
        self._unparsed = 0
        self._stalled: tuple[float, int] | None = None
        self._closing_since: float | None = None
        self._half_closed_since: float | None = None
        self._refused = False
        self._serve: ASGIApp = self.app

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def has_spoken(self) -> bool:
        """Tell if data has arrived that the server will read, but has not read yet."""
        if self._refused or self.transport.is_closing():
            return False
        descriptor = self.transport.get_extra_info("socket").fileno()
        if sys.platform == "win32":
            return bool(select.select([descriptor], [], [], 0)[0])
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def drop(self) -> None:
        """End the connection at once."""
        self._clients.gone(self)
        self.transport.abort()

    def check(self, now: float) -> None:
        """End the connection if its client is too slow."""
        if self._refused or self.transport.is_closing():
            self._check_closing(now)
        elif self._stage == "body":
            self._check_body(now)
        elif self._answering:
            self._check_reader(now)
            self._check_half_closed(now)
        else:
            idle = self._stage == "none" and self.cycle is not None
            if now - self._since > (self._limits.keep_alive_seconds if idle else self._limits.head_seconds):
                self._refuse("request_timeout", "The request did not arrive in time. Send it again.")

    def _check_closing(self, now: float) -> None:
        if self._closing_since is None:
            self._closing_since = now
        elif now - self._closing_since > self._limits.close_seconds:
            self.drop()

    def _check_body(self, now: float) -> None:
        waits = self.flow.read_paused or (self._answering and self.cycle.waiting_for_100_continue)
        if waits or self._body_bytes >= self._limits.body_bytes:
            self._since, self._body_bytes = now, 0
            self._check_reader(now)
        elif now - self._since > self._limits.body_seconds:
            self._refuse("request_timeout", "The request's body did not arrive in time. Send it again.")

    def _check_reader(self, now: float) -> None:
        if not self.flow.write_paused:
            self._stalled = None
            return
        waiting = self.transport.get_write_buffer_size()
        if self._stalled is None or self._stalled[1] != waiting:
            self._stalled = (now, waiting)
        elif now - self._stalled[0] > self._limits.stall_seconds:
            self.drop()

    def _check_half_closed(self, now: float) -> None:
        since = self._half_closed_since
        if since is not None and not self.cycle.response_started and now - since > self._limits.half_closed_seconds:
            self.drop()

    def _refuse(self, code: str, message: str) -> None:
        """Close the connection. A client that waits for an answer gets the reason."""
        if self._stage == "none" or (self._stage == "body" and self.cycle.response_started):
            self.transport.close()
            return
        if self._stage == "head" and self._answering:  # an earlier request is still being answered
            self.drop()
            return
        path = self.scope.get("path", "/")
        body = json.dumps(error_body(path, code, message)).encode()
        status = STATUS_LINE[status_of(code)]
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
        head += b"%b: %b\r\n\r\n" % (REQUEST_ID, id_of(self.headers if self._stage == "body" else ()))
        self.transport.write(status + head + body)
        if self._stage == "body":
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _end(self) -> None:
        """Close the connection behind an answer. The client may still send the request that it answers."""
        if self._stage == "body" and self.cycle.response_complete:
            self._end_refused()
        else:
            self.transport.close()

    def _end_refused(self) -> None:
        """Half-close the connection, and discard what the client still sends until it closes too.

        The system resets a connection that is closed with unread data, and the client would lose its answer.
        """
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self.pipeline.clear()
        self.transport.write_eof()

    # asyncio.Protocol

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._clients.idle(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._clients.gone(self)
        super().connection_lost(exc)

    @override
    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn never keeps it, asyncio lets it
        """asyncio's callback. True keeps the connection open for the answer to a request that has come whole.

        The client has closed its own side, or both: only what is written to it tells.
        """
        if self._refused or self._stage == "body" or not self._answering:
            return False
        self._half_closed_since = self._clients.clock.monotonic()
        self.cycle.keep_alive = False  # the last request's
        return True

    @override
    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > self._limits.head_bytes and not self.transport.is_closing():
            self._refuse("headers_too_large", self._limits.too_large)

    # httptools

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._stage, self._since = "head", self._clients.clock.monotonic()

    @override
    def on_headers_complete(self) -> None:
        self._clients.busy(self)
        application = self._application()
        self.app = partial(answer_and_end, application)
        self._unparsed = self._body_bytes = 0
        super().on_headers_complete()
        self._stage, self._since = "body", self._clients.clock.monotonic()
        end = self._end if application == self._serve else self._end_refused
        self.cycle.transport = cast(asyncio.Transport, AnswerTransport(self.transport, end))
        if len(self.pipeline) > _MOST_PIPELINED:
            self.drop()

    @override
    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        self._body_bytes += len(body)
        super().on_body(body)

    @override
    def on_message_complete(self) -> None:
        self._stage = "none"
        super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        more = bool(self.pipeline)
        # As uvicorn does, but without its timer for idle connections, which `check` ends.
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if more:
                self._start_asgi_task(*self.pipeline.pop())
        self._since = self._clients.clock.monotonic()
        if self._refused:
            self._clients.refused(self)
        elif not more:
            self._clients.idle(self)

    def _application(self) -> ASGIApp:
        if self._head_too_large():
            return self._refusing("headers_too_large", self._limits.too_large)
        return self._serve_health if self._clients.full else self._serve

    def _head_too_large(self) -> bool:
        if len(self.headers) > self._limits.most_headers:
            return True
        if self._unparsed <= self._limits.head_bytes:  # these may include bytes of a body
            return False
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > self._limits.head_bytes

    async def _serve_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        full = self._refusing("service_unavailable", _FULL)
        await (self._serve if scope["path"] == _HEALTH else full)(scope, receive, send)

    def _refusing(self, code: str, message: str) -> ASGIApp:
        async def refuse(scope: Scope, _: Receive, send: Send) -> None:
            await send_error(send, scope["path"], code, message, closing=True)

        return self._clients.observe(refuse)
