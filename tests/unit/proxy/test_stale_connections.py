"""The host closes a kept connection just as the next request arrives on it."""

import asyncio
import json
import socket

import pytest

from cragside.entrypoints.proxy.upstream import Upstream

PROMPT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def closing_the_second(stub, said=b""):
    """Answers the first request of each connection, and closes it at the second one after `said`."""
    answered = set()

    async def answer(_request, writer):
        if writer in answered:
            writer.write(said)
            writer.close()
        else:
            answered.add(writer)
            writer.write(OK)

    stub.answer = answer


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("GET /api/tags", None),
        ("HEAD /", None),
        ("DELETE /api/delete", b'{"model":"m"}'),
        ("PUT /x", b"abc"),
        ("POST /api/chat", PROMPT),
        ("POST /api/generate", b'{"model":"m","prompt":"/rag x"}'),
        ("POST /v1/chat/completions", PROMPT),
        ("POST /v1/messages", PROMPT),
        ("POST /api/embed", b'{"model":"m","input":"x"}'),
    ],
)
async def test_a_request_that_may_be_repeated_is_tried_again_on_a_new_connection(proxied, line, body):
    closing_the_second(proxied.ollama)
    await proxied.ask("GET /api/version")
    assert (await proxied.ask(line, body)).status == 200
    assert proxied.ollama.connections == 2
    _, first, second = proxied.ollama.requests
    assert (first.head, first.body) == (second.head, second.body)


@pytest.mark.parametrize("line", ["POST /v1/files", "POST /v1/batches", "POST /api/create", "PATCH /x"])
async def test_a_request_that_may_make_something_twice_is_not_tried_again(proxied, line):
    closing_the_second(proxied.ollama)
    assert [(await proxied.ask(line, b"{}")).status for _ in range(3)] == [200, 502, 200]
    assert len(proxied.ollama.requests) == 3


async def test_a_streamed_upload_is_not_tried_again(proxied):
    closing_the_second(proxied.ollama)
    await proxied.ask("PUT /x", b"a" * 500_000)
    assert (await proxied.ask("PUT /x", b"a" * 500_000)).status == 502


async def closes(_request, writer):
    writer.close()


async def test_a_new_connection_that_the_host_closes_is_not_tried_again(proxied):
    proxied.ollama.answer = closes
    assert (await proxied.ask("GET /x")).status == 502
    assert len(proxied.ollama.requests) == 1


async def test_a_repeated_request_is_not_repeated_once_more(proxied):
    closing_the_second(proxied.ollama)
    assert (await proxied.ask("GET /x")).status == 200
    proxied.ollama.answer = closes
    assert (await proxied.ask("GET /x")).status == 502
    assert len(proxied.ollama.requests) == 3


@pytest.mark.parametrize("said", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", b"\x00"])
async def test_a_request_whose_answer_has_begun_is_not_tried_again(proxied, said):
    closing_the_second(proxied.ollama, said)
    assert [(await proxied.ask("GET /x")).status for _ in range(2)] == [200, 502]
    assert len(proxied.ollama.requests) == 2


async def test_other_kept_connections_which_may_be_stale_too_are_passed_over(proxied):
    """A host that restarts closes all of them."""
    together = asyncio.Barrier(3)

    async def at_once(_request, writer):
        await together.wait()
        writer.write(OK)

    proxied.ollama.answer = at_once
    await asyncio.gather(*(proxied.ask("GET /x") for _ in range(3)))
    assert proxied.ollama.connections == 3

    async def closes_old(_request, writer):
        if proxied.ollama.connections == 3:
            writer.close()
        else:
            writer.write(OK)

    proxied.ollama.answer = closes_old
    assert (await proxied.ask("GET /x")).status == 200
    assert proxied.ollama.connections == 4


async def test_the_system_asks_a_host_that_is_silent_in_mid_stream(proxied):
    """A host that lost its power or its network sends no end of its answer."""
    upstream = Upstream(f"http://127.0.0.1:{proxied.ollama.port}")
    connection = await upstream.connection()
    probed = connection._transport.get_extra_info("socket")
    assert probed.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    idle = getattr(socket, "TCP_KEEPIDLE", getattr(socket, "TCP_KEEPALIVE", 0))  # macOS has the second
    options = idle, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT
    silence, between, times = (probed.getsockopt(socket.IPPROTO_TCP, option) for option in options)
    assert 0 < silence + between * times <= 60
    connection.abort()
