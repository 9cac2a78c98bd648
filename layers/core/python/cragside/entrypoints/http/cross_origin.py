"""Keeps foreign web pages away from our own routes."""

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.application.contract import error_envelope
from cragside.domain.errors import Forbidden
from cragside.entrypoints.http.errors import STATUS
from cragside.entrypoints.http.peers.failures import is_peer_path, peer_failure
from cragside.entrypoints.origins import FOREIGN_PAGE, Origins, cors_headers, is_preflight, preflight_headers


class CrossOrigin:
    """ASGI middleware: refuses foreign pages, answers the preflights of others, and lets these read the answers.

    Requests that no page sent pass through. A preflight needs no token, as browsers send none with it.
    """

    def __init__(self, app: ASGIApp, origins: Origins) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        if not self._origins.may_call(headers):
            await _refuse(scope["path"], send)
        elif is_preflight(scope["method"], headers):
            await _answer(send, 204, preflight_headers(headers))
        else:
            await self._app(scope, receive, cors_send(send, headers))


def cors_send(send: Send, request: list[tuple[bytes, bytes]]) -> Send:
    """`send`, with the headers that let the page behind the request read the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": cors_headers(message.get("headers", []), request)}
        await send(message)

    return sending if any(name == b"origin" for name, _ in request) else send


def cors_send_if_accepted(send: Send, request: list[tuple[bytes, bytes]], origins: Origins) -> Send:
    """`send` for an answer of ours on Ollama's routes: only pages that Ollama accepts may read it."""
    return cors_send(send, request) if origins.may_ask(request) else send


async def _refuse(path: str, send: Send) -> None:
    error = Forbidden(FOREIGN_PAGE)
    content = peer_failure(path, error.message).model_dump() if is_peer_path(path) else error_envelope(error)
    body = json.dumps(content).encode()
    await _answer(send, STATUS[error.code], [(b"content-type", b"application/json"), (b"vary", b"Origin")], body)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    length = [] if status == 204 else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})
