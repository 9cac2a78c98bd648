"""Keeps foreign web pages away from our own routes."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.domain.errors import Forbidden
from cragside.entrypoints.http.errors import error_response
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
            refusal = error_response(Forbidden(FOREIGN_PAGE), Request(scope), headers={"Vary": "Origin"})
            await refusal(scope, receive, send)
        elif is_preflight(scope["method"], headers):
            preflight = Response(status_code=204)
            preflight.raw_headers = preflight_headers(headers)
            await preflight(scope, receive, send)
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
