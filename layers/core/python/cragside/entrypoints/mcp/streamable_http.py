"""Answers one message of the Model Context Protocol over HTTP.

No session outlives its request: any process of `cragside serve`, and any function on AWS, can answer the next one.
"""

from functools import lru_cache
from typing import Any

import httpx
from mcp.server.mcpserver import MCPServer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cragside.client import Client
from cragside.entrypoints.access import WORKSPACE_HEADERS
from cragside.entrypoints.mcp.server import create_server, use_client
from cragside.entrypoints.request_headers import USER_HEADERS
from cragside.entrypoints.runs import ClientGone, while_connected

_PASSED_ON = (b"authorization", b"x-api-key", *USER_HEADERS, *WORKSPACE_HEADERS)
_SECONDS = 300.0
# The route has checked Host and Origin.
_CHECKED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


async def answer(request: Request, body: bytes) -> Response:
    """The answer to a message. Tools call the routes of the request's application with its tokens and its workspace.

    If the client leaves, the running tool is cancelled, and `ClientDisconnect` is raised.
    """
    sent: list[Message] = []

    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        # Whoever asks again waits for the client to leave: answered at once, it would block the event loop for ever.
        return given.pop() if given else await request.receive()

    async def send(message: Message) -> None:
        sent.append(message)

    transport = httpx.ASGITransport(_as_caller(request))
    async with Client("http://localhost", seconds=_SECONDS, transport=transport) as client, use_client(client):
        manager = _manager(max_body_bytes=len(body) + 1)
        handling = _handled(manager, request.scope, receive, send)
        try:
            await while_connected(request.receive, handling)
        except ClientGone:
            raise ClientDisconnect from None
    start, *parts = sent
    response = Response(b"".join(part.get("body", b"") for part in parts), start["status"])
    response.raw_headers = list(start["headers"])
    return response


async def _handled(manager: StreamableHTTPSessionManager, scope: Scope, receive: Receive, send: Send) -> None:
    """Handle a message. The SDK does not notice a client that leaves; cancelled, it cancels the running tool."""
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def _as_caller(request: Request) -> ASGIApp:
    """Return the application of the request, in which each request has the caller's tokens and workspace."""
    headers = [(name, value) for name, value in request.scope["headers"] if name in _PASSED_ON]
    state = {"ends": request.state.ends} if hasattr(request.state, "ends") else {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        caller = {"client": request.scope.get("client"), "state": dict(state)}
        await request.app({**scope, **caller, "headers": [*scope["headers"], *headers]}, receive, send)

    return app


def _manager(*, max_body_bytes: int) -> StreamableHTTPSessionManager:
    """Return a new manager, whose sessions each end with their request."""
    server = _server()
    server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        transport_security=_CHECKED,
        max_request_body_size=max_body_bytes,
    )
    return server.session_manager


@lru_cache(maxsize=1)
def _server() -> MCPServer[Any]:
    return create_server()
