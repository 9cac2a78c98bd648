"""Keeps foreign web pages away from the routes, before anything of a request is looked at."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cragside.application.contract import error_envelope
from cragside.domain.errors import Forbidden
from cragside.entrypoints.http.errors import STATUS
from cragside.entrypoints.http.peers import failures as peers
from cragside.entrypoints.origins import FOREIGN, Origins, is_preflight, permission, readable

_Message = MutableMapping[str, Any]
_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Application = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


class CrossOrigin:
    """ASGI middleware: refuses foreign pages, answers the preflights of others, and lets those read what comes back.

    Requests that no page sent go through as they are. A preflight brings no token, so none is asked for.
    """

    def __init__(self, app: _Application, origins: Origins) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """ASGI's entry."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        if not self._origins.may_call(headers):
            await _refuse(scope["path"], send)
        elif is_preflight(scope["method"], headers):
            await _answer(send, 204, permission(headers))
        else:
            await self._app(scope, receive, readably(send, headers))


def readably(send: _Send, request: list[tuple[bytes, bytes]]) -> _Send:
    """`send`, with the headers that let the page which sent the request read the answer."""

    async def sending(message: _Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": readable(message.get("headers", []), request)}
        await send(message)

    return sending if any(name == b"origin" for name, _ in request) else send


async def _refuse(path: str, send: _Send) -> None:
    error = Forbidden(FOREIGN)
    told = peers.failure_of(path, error.message).model_dump() if peers.serves(path) else error_envelope(error)
    body = json.dumps(told).encode()
    await _answer(send, STATUS[error.code], [(b"content-type", b"application/json"), (b"vary", b"Origin")], body)


async def _answer(send: _Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})
