"""Clients of HTTP/1.0, clients that close their own side, and clients that get their answer while they still send."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from proxy_stub import Proxied, Recorded
from test_clients import LIMITS, Site, serving

from cragside.entrypoints.http.app import create_app
from tests.knowledge import Knowledge

HALF = replace(LIMITS, half_closed_seconds=0.4)
CLOSING = b"GET /%b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


@dataclass
class Odd(Site):
    """A site with answers of a length, without one, and ahead of the request's end."""

    async def is_left(self) -> None:
        async with asyncio.timeout(5):
            while "gone" not in self.seen:
                await asyncio.sleep(0.01)

    async def _long(self, _: Any, send: Any) -> bytes:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"he", "more_body": True})
        await send({"type": "http.response.body", "body": b"llo"})
        raise asyncio.CancelledError

    async def _early(self, _: Any, send: Any) -> bytes:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"too large"})
        raise asyncio.CancelledError

    async def _none(self, _: Any, send: Any) -> bytes:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        raise asyncio.CancelledError


@dataclass
class Own(Site):
    """Our own application."""

    app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await (super().__call__ if scope["type"] == "lifespan" else self.app)(scope, receive, send)


@pytest.mark.parametrize(
    ("said", "body"),
    [
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"well"),
        (b"GET /healthz HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\n\r\n", b"well"),
        (b"GET /stream HTTP/1.0\r\n\r\n", b"token" * 4),
        (b"GET /long HTTP/1.0\r\n\r\n", b"hello"),
        (b"HEAD /long HTTP/1.0\r\n\r\n", b""),
        (b"GET /none HTTP/1.0\r\n\r\n", b""),
        (b"POST /body HTTP/1.0\r\ncontent-length: 3\r\n\r\nabc", b"3"),
    ],
)
async def test_a_client_of_http_1_0_gets_no_chunks(said: bytes, body: bytes) -> None:
    async with serving(Odd(), hurried=True) as connect:
        client = await connect()
        await client.says(said)
        head, _, heard = (await client.hears()).partition(b"\r\n\r\n")
        assert heard == body
        assert b"transfer-encoding" not in head.lower()
        assert b"connection: close" in head.lower()


async def test_a_refused_client_of_http_1_0_gets_no_chunks_either() -> None:
    async with serving(Odd()) as connect:
        client = await connect()
        await client.says(b"GET /healthz HTTP/1.0\r\n" + b"x: y\r\n" * 300 + b"\r\n")
        head, _, heard = (await client.hears()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 431")
        assert heard.startswith(b"{")


@pytest.mark.parametrize("path", [b"healthz", b"stream", b"long"])
@pytest.mark.parametrize("ending", [b"", b"connection: close\r\n"])
async def test_a_client_that_closes_its_own_side_gets_its_answer(path: bytes, ending: bytes) -> None:
    async with serving(Odd(), hurried=True, limits=replace(HALF, half_closed_seconds=60)) as connect:
        client = await connect()
        await client.says(b"GET /%b HTTP/1.1\r\nhost: x\r\n%b\r\n" % (path, ending))
        client.writer.write_eof()
        heard = await client.hears()
        assert heard.startswith(b"HTTP/1.1 200")
        assert heard.endswith((b"0\r\n\r\n", b"hello"))


async def test_requests_ahead_of_the_closing_are_all_answered() -> None:
    site = Odd()
    async with serving(site, hurried=True, limits=replace(HALF, half_closed_seconds=60)) as connect:
        client = await connect()
        await client.says(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n" * 2 + CLOSING % b"healthz")
        client.writer.write_eof()
        site.released.set()
        heard = await client.hears()
        assert (heard.count(b"waited"), heard.count(b"well")) == (2, 1)


async def test_a_client_that_left_before_its_answer_ends_the_request_soon() -> None:
    class Waiting(Odd):
        async def _body(self, receive: Any, _: Any) -> bytes:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.seen.append("gone")
            return b""

    site = Waiting()
    async with serving(site, hurried=True, limits=HALF) as connect:
        client = await connect()
        await client.says(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        client.writer.close()
        await site.is_left()


async def test_a_client_that_left_in_mid_stream_ends_the_request() -> None:
    site = Odd()
    async with serving(site, hurried=True) as connect:
        client = await connect()
        await client.says(b"GET /much HTTP/1.1\r\nhost: x\r\n\r\n")
        await client.hears_until(b"\r\n\r\n")
        client.writer.close()
        await site.is_left()


async def test_a_client_that_leaves_in_mid_upload_ends_the_request_at_once() -> None:
    site = Odd()
    async with serving(site) as connect:
        client = await connect()
        await client.says(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\nabc")
        client.writer.close()
        await site.is_left()


@pytest.mark.parametrize("ending", [b"", b"connection: close\r\n"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_an_early_413_is_heard_by_a_client_that_still_sends(version: bytes, ending: bytes) -> None:
    async with serving(Odd()) as connect:
        client = await connect()
        size = 20_000_000
        await client.says(b"POST /early HTTP/%b\r\nhost: x\r\n%bcontent-length: %d\r\n\r\n" % (version, ending, size))
        heard = await client.hears_until(b"too large")
        assert b" 413 " in heard
        for _ in range(size // 1_000_000):
            await client.says(b"x" * 1_000_000)  # no reset


@pytest.mark.parametrize("path", [b"/v1/enrich", b"/v1/documents", b"/mcp", b"/ingest", b"/query"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("expects", [b"", b"expect: 100-continue\r\n"])
async def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(
    tmp_path: Path, path: bytes, version: bytes, expects: bytes
) -> None:
    knowledge = Knowledge(tmp_path, pages={}, max_body_bytes=1024)
    async with serving(Own(app=create_app(knowledge.container))) as connect:
        client = await connect()
        kind = b"host: localhost\r\ncontent-type: application/json\r\n"
        await client.says(b"POST %b HTTP/%b\r\n%b%bcontent-length: 2000000\r\n\r\n" % (path, version, kind, expects))
        head, _, heard = (await client.hears()).partition(b"\r\n\r\n")
        assert b" 413 " in head.splitlines()[0]
        assert b"larger than 1024 bytes" in heard
        assert b"connection: close" in head.lower()
        await client.says(bytes(2_000_000))  # no reset
    await knowledge.close()


async def test_a_body_without_a_length_is_refused_once_it_is_too_large(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={}, max_body_bytes=1024)
    async with serving(Own(app=create_app(knowledge.container))) as connect:
        client = await connect()
        kind = b"host: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n"
        await client.says(b"POST /v1/enrich HTTP/1.1\r\n%b\r\n800\r\n%b\r\n" % (kind, b" " * 2048))
        assert b" 413 " in (await client.hears()).splitlines()[0]
    await knowledge.close()


async def test_a_client_that_sends_head_and_body_apart_keeps_its_connection() -> None:
    async with serving(Odd()) as connect:
        client = await connect()
        for _ in range(2):
            await client.says(b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n")
            await client.says(b"abc")
            assert b"connection: close" not in (await client.hears_until(b"0\r\n\r\n")).lower()


async def test_an_early_413_of_the_host_is_heard_by_a_client_that_still_sends(proxied: Proxied) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 9\r\n\r\ntoo large"
    sent = 0

    async def read(reader: asyncio.StreamReader) -> Recorded:
        return Recorded(await reader.readuntil(b"\r\n\r\n"), b"")

    async def answer(_: Recorded, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(refusal)
        assert proxied.ollama.reader is not None
        while piece := await proxied.ollama.reader.read(65_536):  # as servers linger for those that still send
            sent += len(piece)

    proxied.ollama._read, proxied.ollama.answer = read, answer  # type: ignore[method-assign]
    reader, writer = await proxied.open()
    writer.write(b"PUT /blob HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n" + bytes(100_000))
    async with asyncio.timeout(5):
        assert (await reader.readuntil(b"too large")).startswith(b"HTTP/1.1 413")
    writer.close()
    assert sent < 1_000_000
