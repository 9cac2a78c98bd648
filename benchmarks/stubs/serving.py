"""The HTTP server of the stubs: on loopback, on a free port that it prints as its first line.

It is minimal, on a parser in C: its CPU time is taken from the measured programs, and any delay beyond the simulated
latency counts against them.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import orjson
import uvloop

# Timers tick in milliseconds and fire late: half a tick less makes them right on average.
_HALF_A_TICK = 0.0005


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and its arrival in `time.monotonic()`."""

    arrived: float
    query: str
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of a 200."""

    body: bytes
    content_type: str = "application/json"


Route = Callable[[Request], Awaitable[Answer]]


def as_json(value: Any) -> Answer:
    return Answer(orjson.dumps(value))


def serve(routes: Mapping[str, Route]) -> None:
    """Serve these paths, for any method, until the process is stopped."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvloop.run(_run(routes, listener))


async def until(moment: float) -> None:
    """Wait for a moment of `time.monotonic()`, so the stub's own work is part of the simulated latency."""
    await asyncio.sleep(max(0.0, moment - time.monotonic() - _HALF_A_TICK))


async def _run(routes: Mapping[str, Route], listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Connection(routes), sock=listener, backlog=1024)
    await server.serve_forever()


class _Connection(asyncio.Protocol):
    """One client's requests, one after the other; also the parser's callbacks."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._routes = routes
        self._parser = httptools.HttpRequestParser(self)
        self._under_way: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._arrived, self._url, self._body = time.monotonic(), b"", b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        url = urlsplit(self._url.decode())
        task = asyncio.ensure_future(self._answer(url.path, Request(self._arrived, url.query, self._body)))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _answer(self, path: str, request: Request) -> None:
        route = self._routes.get(path)
        answer = await route(request) if route else Answer(b'{"error": "no such route"}')
        status = b"200 OK" if route else b"404 Not Found"
        head = f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n\r\n".encode()
        self._transport.write(b"HTTP/1.1 " + status + b"\r\n" + head + answer.body)
