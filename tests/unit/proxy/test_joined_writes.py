"""The head of an answer is written with its first piece, and alone if that has not come yet."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from proxy_stub import Recorded, StubOllama, faked, listening, raw_post
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cragside.entrypoints.access import Keys
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.proxy.app import Proxy
from cragside.entrypoints.proxy.clients import AnswerTransport, ClientConnection, Clients, ConnectionLimits
from cragside.settings import Settings

OURS = partial(ClientConnection, clients=Clients(ConnectionLimits(40)))
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ASKED = raw_post("/api/chat", b'{"model": "m", "messages": []}', b"Connection: close\r\n")
Serve = Callable[..., Awaitable[int]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a proxy before a stub Ollama: `await serve(answer, protocol)` is its port."""
    async with AsyncExitStack() as stack:

        async def serving(answer: Any, protocol: Callable[..., Any] = OURS) -> int:
            ollama = StubOllama(answer)
            host = await asyncio.start_server(ollama.serve, "127.0.0.1", 0)
            stack.callback(host.close)
            container = faked(Settings(ollama_base_url=f"http://127.0.0.1:{host.sockets[0].getsockname()[1]}"))
            keys = Keys(container)
            proxy = Proxy(container, create_app(container, keys=keys), keys=keys)
            return await stack.enter_async_context(listening(proxy, protocol))

        yield serving


async def heard(port: int) -> bytes:
    """All that a client hears until its connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASKED)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_head_goes_out_at_once_if_the_model_thinks_before_its_first_word(serve: Serve) -> None:
    thought = asyncio.Event()

    async def answer(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        await thought.wait()
        writer.write(b"5\r\nhello\r\n0\r\n\r\n")

    port = await serve(answer)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASKED)
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        thought.set()
        rest = await reader.read()
    writer.close()
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert rest == b"5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
        CHUNKED + b"5\r\nhello\r\n0\r\nX-Took: 3\r\n\r\n",
        CHUNKED + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Odd: a\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["pieces", "trailers", "no piece", "length", "nothing", "no content", "error"],
)
async def test_the_bytes_of_an_answer_are_those_that_uvicorn_writes(serve: Serve, answer: bytes) -> None:
    ours, uvicorns = [await heard(await serve(answer, protocol)) for protocol in (OURS, HttpToolsProtocol)]
    assert ours == uvicorns
    assert ours.startswith(answer.partition(b"\r\n")[0])


@pytest.mark.parametrize("sent", [b"", CHUNKED, CHUNKED + b"5\r\nhel", CHUNKED + b"5\r\nhello\r\n"])
async def test_an_answer_that_breaks_off_reaches_the_client_as_far_as_it_came(serve: Serve, sent: bytes) -> None:
    async def answer(_: Recorded, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    ours, uvicorns = [await heard(await serve(answer, protocol)) for protocol in (OURS, HttpToolsProtocol)]
    assert ours == uvicorns
    assert ours.startswith(b"HTTP/1.1 200 OK" if sent else b"HTTP/1.1 502")
    assert not sent or not ours.endswith(b"0\r\n\r\n")


class Written:
    """A transport that keeps what is written, each call by itself."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def is_closing(self) -> bool:
        return self.closing


async def next_turn() -> None:
    """Return once the event loop has run what waits."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


async def test_a_head_and_a_piece_that_are_there_together_are_one_call() -> None:
    written = Written()
    answer = AnswerTransport(written, lambda: None)
    for piece in (b"head", b"one", b"two"):
        answer.write(piece)
    await next_turn()
    assert written.calls == [b"headone", b"two"]


async def test_a_head_waits_for_one_turn_of_the_event_loop() -> None:
    written = Written()
    answer = AnswerTransport(written, lambda: None)
    answer.write(b"head")
    assert written.calls == []
    await next_turn()
    assert written.calls == [b"head"]
    answer.write(b"one")
    assert written.calls == [b"head", b"one"]


async def test_a_head_goes_out_before_the_answer_ends_and_to_nobody_who_left() -> None:
    ended, left = Written(), Written()
    for written in (ended, left):
        answer = AnswerTransport(written, lambda written=written: written.calls.append(b"end"))  # type: ignore[misc]
        answer.write(b"head")
        written.closing = written is left
        answer.close()
    await next_turn()
    assert (ended.calls, left.calls) == ([b"head", b"end"], [b"end"])
