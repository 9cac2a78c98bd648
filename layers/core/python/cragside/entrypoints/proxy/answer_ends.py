"""How answers end for clients: of HTTP/1.0, and of requests that have not come whole."""

from collections.abc import Callable
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Closing:
    """Tells a client whose request has not come whole that its connection ends behind the answer.

    What it sends is no next request, and a client that waits for `100 Continue` sends no body at all.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry."""
        cycle: RequestResponseCycle = cast(Any, send).__self__

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and cycle.more_body:
                cycle.keep_alive = False
            await send(message)

        await self._app(scope, receive, sending)


class Unframed:
    """Serves a client of HTTP/1.0: an answer without a length ends with the connection, and there are no chunks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's entry."""
        cycle: RequestResponseCycle = cast(Any, send).__self__
        cycle.chunked_encoding = False

        async def sending(message: Message) -> None:
            # uvicorn counts what is left of a length.
            cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, sending)


class Ending:
    """The transport of a request. `close` replaces its closing."""

    def __init__(self, transport: Any, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close
