"""A host whose head, interim answers, trailers or chunk extensions never end: the client gets a 502, or an end."""

import asyncio
import contextlib
import gc
import weakref

import pytest

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.proxy import upstream as upstream_connection
from cragside.entrypoints.runs import ClientGone

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"

pytestmark = pytest.mark.attack("exhausted resources")


def endless(stub, *, first=b"HTTP/1.1 200 OK\r\n", again, pause=0.0):
    """Answers with `first`, and then with `again` until the connection is closed."""

    async def answer(_request, writer):
        with contextlib.suppress(ConnectionError):
            writer.write(first)
            while True:
                writer.write(again)
                await writer.drain()
                await asyncio.sleep(pause)

    stub.answer = answer


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-More: " + b"x" * 1000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"a:b\r\n" * 500),
        (b"HTTP/1.1 200 OK\r\nX-One: ", b"x" * 4096),
        (b"HTTP/1.1 200 OK\r\n", b"x" * 4096),
        (b"HTTP/1.1 200 ", b"O" * 4096),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
        (b"", b"\r\n" * 2048),
    ],
)
async def test_a_head_without_end_is_answered_with_502(proxied, first, again):
    endless(proxied.ollama, first=first, again=again)
    async with asyncio.timeout(5):
        reply = await proxied.post("/api/chat", CHAT)
    assert reply.status == 502


async def test_a_head_that_comes_in_drops_is_answered_with_502(proxied, monkeypatch):
    monkeypatch.setattr(upstream_connection, "_HEAD_SECONDS", 0.1)
    endless(proxied.ollama, again=b"a", pause=0.02)
    async with asyncio.timeout(5):
        reply = await proxied.post("/api/chat", CHAT)
    assert reply.status == 502
    assert b"did not end within" in reply.body


async def test_a_host_may_think_between_an_interim_answer_and_the_answer(proxied, monkeypatch):
    monkeypatch.setattr(upstream_connection, "_HEAD_SECONDS", 0.02)

    async def answer(_request, writer):
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    proxied.ollama.answer = answer
    reply = await proxied.post("/api/chat", CHAT)
    assert (reply.status, reply.body) == (200, b"ok")


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-Trailer: " + b"x" * 1000 + b"\r\n"),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX-Trailer: ", b"x" * 4096),
        (CHUNKED + b"2;a=", b"x" * 4096),
        (CHUNKED + b"2\r\n{}\r\n", b"0" * 4096),
    ],
)
async def test_trailers_and_chunk_extensions_without_end_end_the_answer(proxied, first, again):
    endless(proxied.ollama, first=first, again=again)
    async with asyncio.timeout(5):
        with contextlib.suppress(AssertionError, ValueError):  # the answer lacks its end
            await proxied.post("/api/chat", CHAT)
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    assert (await proxied.post("/api/chat", CHAT)).body == b"ok"


async def test_an_aborted_exchange_keeps_no_memory_until_garbage_is_collected():
    class Transport(asyncio.Transport):
        def abort(self):
            pass

    connection = upstream_connection.UpstreamConnection()
    connection._transport = Transport()
    gc.disable()
    try:
        reason = ClientGone()
        kept = weakref.ref(reason)
        connection.abort(reason)
        del reason
        with contextlib.suppress(ClientGone):
            await connection.response()
        assert kept() is None
    finally:
        gc.enable()
    with pytest.raises(ServiceUnavailable):
        await connection.response()
