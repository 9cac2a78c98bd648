"""Bodies of requests and answers in a content coding, and answers of any content type."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from proxy_stub import FakeMemory, Proxied, Recorded, raw_post

from cragside.entrypoints.proxy.messages import Decoder, coding_of, decoded
from tests.bounds import bounded
from tests.hosts import forms
from tests.hosts.upstream import PIECES

ASKED = {"model": "m", "messages": [{"role": "user", "content": "/rag why?"}], "stream": False}
BODY = json.dumps(ASKED).encode()
SHOWN = (b"X-RAG-Context: true",)


def bare(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-15)
    return packing.compress(data) + packing.flush()


def in_members(data: bytes) -> bytes:
    return gzip.compress(data[:9]) + gzip.compress(data[9:])


PACKINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"identity": bytes,
    b" Identity , identity": bytes,
    b"gzip": gzip.compress,
    b"X-GZIP": in_members,
    b"deflate": zlib.compress,
    b"identity, deflate": bare,
}
packed = pytest.mark.parametrize(("coding", "pack"), PACKINGS.items())


@packed
async def test_a_command_in_a_packed_request_is_found(proxied: Proxied, coding: bytes, pack: Any) -> None:
    headers = (b"Content-Encoding: " + coding, b"Content-Type: text/plain")
    reply = await proxied.ask("POST /api/chat", pack(BODY), headers)
    assert (reply.status, reply.header(b"x-rag-verdict")) == (200, [b"local"])
    sent = proxied.ollama.requests[-1]
    assert json.loads(sent.body)["messages"][-1]["content"] == "why?"
    assert sent.header(b"content-encoding") == []


@packed
async def test_a_packed_request_without_a_command_passes_byte_for_byte(
    proxied: Proxied, coding: bytes, pack: Any
) -> None:
    body = pack(BODY.replace(b"/rag ", b""))
    reply = await proxied.ask("POST /api/chat", body, (b"Content-Encoding: " + coding,))
    sent = proxied.ollama.requests[-1]
    assert (sent.body, sent.header(b"content-encoding")) == (body, [coding.strip()])
    assert reply.header(b"x-rag-degraded") == []


@packed
async def test_a_packed_name_of_a_model_loses_its_suffix(proxied: Proxied, coding: bytes, pack: Any) -> None:
    await proxied.ask("POST /api/show", pack(b'{"model":"m+rag"}'), (b"Content-Encoding: " + coding,))
    sent = proxied.ollama.requests[-1]
    assert (json.loads(sent.body), sent.header(b"content-encoding")) == ({"model": "m"}, [])


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"br", b"\x0b\x02\x80"),
        (b"zstd", b"\x28\xb5\x2f\xfd"),
        (b"gzip, br", gzip.compress(BODY, mtime=0)),
        (b"gzip", BODY),
        (b"gzip", gzip.compress(BODY, mtime=0)[:-9]),
        (b"gzip", gzip.compress(BODY + b" " * 3000, mtime=0)),
        (b"deflate", zlib.compress(BODY)[:-3]),
    ],
    ids=["br", "zstd", "two", "not packed", "cut off", "too long", "cut off too"],
)
async def test_a_request_that_cannot_be_unpacked_passes_and_the_client_is_told(
    start: Any, coding: bytes, body: bytes
) -> None:
    proxied = await start(max_body_bytes=2048)
    reply = await proxied.ask("POST /api/chat", body, (b"Content-Encoding: " + coding,))
    assert (reply.status, reply.header(b"x-rag-degraded")) == (200, [b"request"])
    assert proxied.ollama.requests[-1].body == body


def answering(proxied: Proxied, body: bytes, kind: str | None, coding: bytes = b"") -> None:
    """Has the host answer seven bytes at a time."""

    async def answer(_: Recorded, writer: asyncio.StreamWriter) -> None:
        head = b"Content-Type: %b\r\n" % kind.encode() if kind is not None else b""
        head += b"Content-Encoding: %b\r\n" % coding if coding else b""
        writer.write(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (head, len(body)))
        for start in range(0, len(body), 7):
            writer.write(body[start : start + 7])
            await writer.drain()

    proxied.ollama.answer = answer


def an_answer(path: str, *, stream: bool) -> tuple[dict[str, Any], bytes]:
    """A request with the command, and the host's answer to it."""
    prompt = {"messages": ASKED["messages"]} if "chat" in path else {"prompt": "/rag why?"}
    prompt = {"input": "/rag why?"} if path == "/v1/responses" else prompt
    asked = {"model": "m", "stream": stream, **prompt}
    whole = b"".join(forms.streamed(path, asked, PIECES, endless=False))
    return asked, whole if stream else json.dumps(forms.whole(path, asked, PIECES)).encode()


PATHS = ["/api/chat", "/api/generate", "/v1/chat/completions", "/v1/responses"]


@packed
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_a_packed_answer_shows_its_evidence(
    proxied: Proxied, path: str, stream: bool, coding: bytes, pack: Any
) -> None:
    asked, body = an_answer(path, stream=stream)
    answering(proxied, pack(body), "application/json", coding)
    reply = await proxied.post(path, asked, SHOWN)
    assert (reply.body.count(b'"rag_context"'), reply.header(b"content-encoding")) == (1, [])
    assert (b'"url_citation"' in reply.body) == path.startswith("/v1")


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "application/json",
        "application/json; charset=utf-8",
        "application/x-ndjson; charset=utf-8",
        "application/jsonl",
        "text/event-stream",
        "text/event-stream; charset=utf-8",
        "TEXT/PLAIN",
        "text/html",
    ],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_of_any_type_shows_its_evidence(
    proxied: Proxied, path: str, stream: bool, kind: str | None
) -> None:
    asked, body = an_answer(path, stream=stream)
    answering(proxied, body, kind)
    reply = await proxied.post(path, asked, SHOWN)
    assert reply.body.count(b'"rag_context"') == 1
    assert (b'"url_citation"' in reply.body) == path.startswith("/v1")


@pytest.mark.parametrize("path", PATHS)
async def test_an_indented_answer_shows_its_evidence(proxied: Proxied, path: str) -> None:
    asked, body = an_answer(path, stream=False)
    answering(proxied, b"\n" + json.dumps(json.loads(body), indent=2).encode() + b"\n", "application/x-ndjson")
    reply = await proxied.post(path, asked, SHOWN)
    shown = reply.json.get("response", reply.json) if path == "/v1/responses" else reply.json
    assert shown["rag_context"]["verdict"] == "local"


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-ndjson"])
async def test_each_line_of_a_stream_arrives_before_the_next_is_made(proxied: Proxied, kind: str) -> None:
    read = asyncio.Event()

    async def answer(_: Recorded, writer: asyncio.StreamWriter) -> None:
        line = b'{"message":{"content":"a"},"done":false}\n'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        writer.write(head + b"%x\r\n%b\r\n" % (len(line), line))
        await read.wait()
        writer.write(b"0\r\n\r\n")

    proxied.ollama.answer = answer
    reader, writer = await proxied.open()
    writer.write(raw_post("/api/chat", BODY, b"X-RAG-Context: true\r\n"))
    async with asyncio.timeout(5):
        await reader.readuntil(b'"done":false}\n')
    read.set()
    writer.close()


async def test_a_coding_that_is_not_known_passes_unchanged(proxied: Proxied) -> None:
    asked, body = an_answer("/api/chat", stream=True)
    answering(proxied, body, "application/x-ndjson", b"br")
    reply = await proxied.post("/api/chat", asked, SHOWN)
    assert (reply.body, reply.header(b"content-encoding")) == (body, [b"br"])


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"{}" * 99, mtime=0)[:-9]])
async def test_an_answer_that_breaks_within_its_coding_does_not_end_regularly(proxied: Proxied, body: bytes) -> None:
    answering(proxied, body, "application/json", b"gzip")
    answer = await proxied.raw(raw_post("/api/chat", BODY, b"X-RAG-Context: true\r\n"))
    assert answer.startswith(b"HTTP/1.1 200")
    assert not answer.endswith(b"0\r\n\r\n")


@packed
async def test_a_packed_exchange_is_remembered_and_passes_byte_for_byte(start: Any, coding: bytes, pack: Any) -> None:
    proxied = await start(store_exchanges=True)
    body = pack(json.dumps({"message": {"content": "Very deep."}, "done": True}, indent=1).encode())
    answering(proxied, body, "application/json", coding)
    reply = await proxied.ask("POST /api/chat", pack(BODY), (b"Content-Encoding: " + coding,))
    assert (reply.body, reply.header(b"content-encoding")) == (body, [coding.strip()])
    memory: FakeMemory = proxied.memory
    async with asyncio.timeout(5):
        await memory.news.wait()
    assert [(each.user, each.assistant) for _, each in memory.exchanges] == [("why?", "Very deep.")]


async def test_a_packed_list_of_models_gets_the_suffix(start: Any) -> None:
    proxied = await start(list_rag_models=True)
    answering(proxied, gzip.compress(b'{"models":[{"name":"m"}]}'), "application/json", b"gzip")
    reply = await proxied.ask("GET /api/tags", headers=(b"Accept-Encoding: gzip",))
    assert [each["name"] for each in reply.json["models"]] == ["m", "m+rag"]


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_little_that_becomes_much_is_given_up_early(coding: bytes) -> None:
    zeros = bytes(200_000_000)
    bomb = gzip.compress(zeros, 1) if coding == b"gzip" else zlib.compress(zeros, 1)
    with bounded(0.5):
        assert decoded(bomb, coding, 10_000) is None
        assert len(next(Decoder(coding).pieces(bomb))) <= 65_536


def test_a_body_of_endless_members_is_given_up_early() -> None:
    empty = gzip.compress(b"")
    with bounded(0.5):
        assert decoded(empty * 400_000, b"gzip", 10_000) is None


def test_codings_of_several_headers_count_together() -> None:
    headers = [(b"Content-Encoding", b"gzip"), (b"content-encoding", b"identity"), (b"content-encoding", b"BR")]
    assert coding_of(headers) == b"gzip,br"
