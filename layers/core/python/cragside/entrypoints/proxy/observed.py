"""Gives each request an id, and writes a line to the log when it has been answered."""

import logging
import re
import string
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from random import getrandbits
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.domain.hops import request_id
from cragside.domain.outcome import RagContext
from cragside.entrypoints.log import Event
from cragside.entrypoints.proxy.errors import send_error
from cragside.entrypoints.proxy.messages import Header, value_of
from cragside.entrypoints.proxy.routes import is_own
from cragside.ports.telemetry import Tracer

REQUEST_ID = b"x-request-id"
_TRACE = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
# Not a status of HTTP: servers write it for clients that left before the answer began.
CLIENT_LEFT = 499
_SAFE = (string.ascii_letters + string.digits + "-._").encode()
_LONGEST_ID = 128
_LONGEST_PATH = 200
# What monitors ask every few seconds is logged only if it fails, or at the level debug.
_PROBES = frozenset({"/healthz", "/ready", "/metrics"})
_log = logging.getLogger("cragside.access")


@dataclass(slots=True)
class Answered:
    """An answered request. `template` is that of a route of ours. Times are in seconds."""

    method: str
    path: str
    template: str | None
    own: bool
    status: int
    seconds: float
    first_byte: float | None
    client: str
    context: RagContext | None

    @property
    def route(self) -> str:
        """The template, else the path."""
        return self.template or self.path[:_LONGEST_PATH]


class Observer:
    """Observes the requests of a server.

    A request keeps the id that its client sent as `X-Request-ID`, if it is short and plain; others get a new one. Each
    answer has it. `count` is told of each answered request, and the `tracer` of the trace that a client continues.
    """

    def __init__(
        self, slow_seconds: float, *, count: Callable[[Answered], None] | None = None, tracer: Tracer | None = None
    ) -> None:
        self._slow = slow_seconds
        self._count = count
        self._tracer = tracer

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """An application that is observed."""

        async def observed(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                await self._observe(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return observed  # uvicorn would take a `partial` for an application of ASGI 2

    async def _observe(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        identifier = id_of(scope["headers"])
        request_id.set(identifier.decode())
        status, first_byte = CLIENT_LEFT, None

        def sending(message: Message) -> Awaitable[None]:  # a coroutine of its own would cost each piece its share
            nonlocal status, first_byte
            if message["type"] == "http.response.start":
                status, first_byte = message["status"], time.perf_counter() - began
                others = [header for header in message.get("headers", ()) if header[0].lower() != REQUEST_ID]
                message = {**message, "headers": [*others, (REQUEST_ID, identifier)]}
            return send(message)

        try:
            with self._called(identifier, scope["headers"]):
                await app(scope, receive, sending)
        except Exception:
            if first_byte is None:
                text = "The server failed; its log has the details."
                await send_error(sending, scope["path"], "processing_error", text, closing=True)
            raise  # uvicorn logs it
        finally:
            self._tell(scope, status, time.perf_counter() - began, first_byte)

    def _called(self, identifier: bytes, headers: Sequence[Header]) -> AbstractContextManager[None]:
        if self._tracer is None:
            return nullcontext()
        given = _TRACE.fullmatch(value_of(headers, b"traceparent") or b"")
        return self._tracer.called(identifier.decode(), given[0].decode() if given else "")

    def _tell(self, scope: Scope, status: int, seconds: float, first_byte: float | None) -> None:
        path: str = scope["path"]
        state: Mapping[str, Any] = scope.get("state", {})
        answered = Answered(
            method=scope["method"],
            path=path,
            template=getattr(scope.get("route"), "path", None),
            own=is_own(path),
            status=status,
            seconds=seconds,
            first_byte=first_byte,
            client=(scope.get("client") or ("",))[0],
            context=state.get("rag_context"),
        )
        if self._count is not None:
            self._count(answered)
        quiet = path in _PROBES and status < 400
        level = logging.WARNING if status >= 500 else logging.DEBUG if quiet else logging.INFO
        if _log.isEnabledFor(level):
            event = _event(answered, slow=seconds >= self._slow)
            # `_log.log` would search the stack for this line, which no form of our log has.
            _log.handle(_log.makeRecord(_log.name, level, "", 0, event, (), None))


def id_of(headers: Sequence[Header] = ()) -> bytes:
    """The id that the client sent, if it is short and plain, else a new one."""
    given = value_of(headers, REQUEST_ID)
    if given and len(given) <= _LONGEST_ID and not given.translate(None, _SAFE):
        return given
    return b"%016x" % getrandbits(64)  # nobody gains by guessing it, and the system's randomness costs a call


def _event(answered: Answered, *, slow: bool) -> Event:
    milliseconds = round(answered.seconds * 1000, 1)
    fields: dict[str, Any] = {
        "method": answered.method,
        "route": answered.route,
        "status": answered.status,
        "ms": milliseconds,
        "client": answered.client,
    }
    text = f"{answered.method} {answered.route} {answered.status} {milliseconds:.0f} ms {answered.client}"
    context = answered.context
    if context is not None:
        degraded = list(dict.fromkeys(degradation.component for degradation in context.degraded))
        fields |= {"verdict": context.verdict, "documents": len(context.documents), "degraded": degraded}
        text += f" verdict={context.verdict} documents={len(context.documents)}"
        text += f" degraded={','.join(degraded)}" if degraded else ""
    if slow:
        fields["slow"] = steps = _steps(answered)
        text += f" slow: {', '.join(f'{name} {spent:.0f} ms' for name, spent in steps.items())}"
    return Event(text, fields)


def _steps(answered: Answered) -> dict[str, float]:
    """The milliseconds of each step of a request, the longest first."""
    steps = dict(answered.context.timings_ms) if answered.context else {}
    if answered.first_byte is not None:
        found = sum(steps.values())
        # The host loads a model and reads the prompt before it answers.
        steps["before the answer" if not steps else "other work" if answered.own else "model host"] = max(
            answered.first_byte * 1000 - found, 0.0
        )
        steps["sending the answer"] = (answered.seconds - answered.first_byte) * 1000
    return {name: round(spent, 1) for name, spent in sorted(steps.items(), key=lambda step: -step[1])}
