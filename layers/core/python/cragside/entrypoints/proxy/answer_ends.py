"""How answers end for clients: of HTTP/1.0, and of requests that have not come whole."""

from collections.abc import Callable
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


async def ended(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Have `app` answer, and end the answer as its client reads it.

    For a client of HTTP/1.0 an answer without a length ends with the connection, and there are no chunks. A client
    whose request has not come whole is told that its connection ends behind the answer: what it sends is no next
    request, and a client that waits for `100 Continue` sends no body at all.
    """
    cycle: RequestResponseCycle = cast(Any, send).__self__
    unframed = scope["http_version"] == "1.0"
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


class Ending:
    """The transport of a request. `close` replaces its closing."""

    def __init__(self, transport: Any, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close
