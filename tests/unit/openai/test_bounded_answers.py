"""An answer of a model host that never ends is not read to its end."""

import asyncio
import contextlib

import pytest

from cragside.adapters import http_clients as bounded_answers
from cragside.adapters.ollama.host import OllamaHost
from cragside.adapters.openai import OpenAIHost
from cragside.databases.renewable import Fixed
from cragside.domain.errors import ServiceUnavailable

MOST = 256 * 1024
# The system may hold as much again in its buffers before the server notices.
TAKEN = 64 * MOST


class Endless:
    """A host whose every answer is 200 and an array of JSON without an end."""

    def __init__(self, headers: bytes = b"") -> None:
        self.headers = headers
        self.sent = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + self.headers + b"\r\n[")
            while self.sent < TAKEN:
                writer.write(b"1," * 32768)
                self.sent += 65536
                await writer.drain()
        writer.close()


@pytest.fixture
async def endless(monkeypatch):
    monkeypatch.setattr(bounded_answers, "MOST_BYTES", MOST)
    host = Endless()
    server = await asyncio.start_server(host.answer, "127.0.0.1", 0)
    host.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield host
    server.close()


@pytest.mark.parametrize("call", [lambda host: host.models(), lambda host: host.embed("m", ["text"])])
async def test_a_host_of_openais_api_is_read_up_to_a_size(endless, call):
    host = OpenAIHost(f"{endless.url}/v1", Fixed(""), parallel=1)
    with pytest.raises(ServiceUnavailable, match="answer is too long"):
        await call(host)
    await host.close()
    assert endless.sent < TAKEN


async def test_a_compressed_answer_is_not_unpacked(endless):
    endless.headers = b"content-encoding: gzip\r\n"
    host = OpenAIHost(f"{endless.url}/v1", Fixed(""), parallel=1)
    with pytest.raises(ServiceUnavailable, match="answer is too long"):
        await host.models()
    await host.close()


async def test_ollama_is_read_up_to_a_size(endless):
    host = OllamaHost(endless.url, parallel=1)
    with pytest.raises(ServiceUnavailable, match="answer is too long"):
        await host.models()
    await host.close()
    assert endless.sent < TAKEN
