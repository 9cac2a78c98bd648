import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proxy_stub import StubOllama

from cragside.domain import hops
from cragside.entrypoints.proxy.upstream import Upstream

NDJSON = b"".join(b'{"model":"m","response":"t%02d","done":false}\n' % i for i in range(20)) + b'{"done":true}\n'
SSE = b"".join(b'data: {"choices":[{"delta":{"content":"t%d"}}]}\n\n' % i for i in range(20)) + b"data: [DONE]\n\n"


def chunks(body: bytes, size: int = 37) -> bytes:
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def streamed(kind: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n%b" % (kind, chunks(body))


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/api/generate", b"application/x-ndjson", NDJSON),
        ("/api/chat", b"application/x-ndjson", NDJSON),
        ("/v1/chat/completions", b"text/event-stream", SSE),
        ("/v1/responses", b"text/event-stream", SSE),
    ],
)
async def test_a_stream_is_returned_byte_for_byte(proxied, path, kind, body):
    proxied.ollama.answer = streamed(kind, body)
    reply = await proxied.post(path, {"model": "m", "prompt": "hi", "messages": [{"role": "user", "content": "hi"}]})
    assert (reply.status, reply.body, reply.header(b"content-type")) == (200, body, [kind])
    assert proxied.enricher.calls == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"model" : "m",\n "prompt":"caf\xc3\xa9 \\u00e9", "b":1, "a":1e400, "a":2}',
        b'{"model":"m","messages":[{"role":"user","content":"what does /rag do?"}]}',
        b'{"model":"m","messages":[{"role":"user","content":"/ragtime"}]}',
        b'{"model":"m","prompt":"/rag hello"',
        b'{"model":"m","prompt":"/rag x","n":NaN}',
        b'{"model":"m","prompt":"/rag x","n":1e999}',
        b'["/rag x"]',
        b'"/rag x"',
        b"\xff\xfe/rag",
        b"\x00\x01\x02/rag",
        b'{"model":"m","prompt":["/rag x"],"messages":"/rag x"}',
        b'{"model":"m","messages":[{"role":"user","content":7}],"x":"/rag "}',
        b'{"model":"m","messages":["/rag x"]}',
        b'{"model":"m","messages":[{"role":"assistant","content":"/rag x"}]}',
        b'{"model":"m","messages":[{"role":"user","content":"/rag x"},{"role":"user","content":"plain"}]}',
        b"[" * 5000 + b'"/rag"',
        b'{"model":"m","a":' + b"9" * 5000 + b',"prompt":"/rag x"}',
        b"",
    ],
)
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/v1/chat/completions", "/api/unknown"])
async def test_a_body_without_a_command_is_forwarded_byte_for_byte(proxied, path, body):
    reply = await proxied.ask(f"POST {path}", body)
    assert (reply.status, reply.json) == (200, {"response": "ok"})
    assert [request.body for request in proxied.ollama.requests] == [body]
    assert proxied.enricher.calls == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=300), query=st.text("abc=&%20+/?", max_size=20))
async def test_any_bytes_pass_in_both_directions(proxied, body, query):
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    reply = await proxied.ask(f"POST /api/anything?{query}", body)
    assert reply.body == body
    sent = proxied.ollama.requests[-1]
    assert sent.body == body
    assert sent.line == f"POST /api/anything{'?' + query if query else ''} HTTP/1.1".encode()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"])
async def test_every_method_passes(proxied, method):
    assert (await proxied.ask(f"{method} /api/tags?a=b")).status == 200
    assert proxied.ollama.requests[0].line == f"{method} /api/tags?a=b HTTP/1.1".encode()


async def test_head_has_a_length_and_no_body(proxied):
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 512\r\nX-Digest: d\r\n\r\n"
    for _ in range(2):
        reply = await proxied.ask("HEAD /api/blobs/sha256:abc")
        assert (reply.status, reply.body, reply.header(b"content-length")) == (200, b"", [b"512"])
    assert reply.header(b"x-digest") == [b"d"]


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/a%2Fb/../c%20d",
        "//double//slash",
        "/api/show?name=a%2Fb&x=1&x=2&empty=",
        "/caf%C3%A9?q=%E2%82%AC+x",
        "/a;b=c",
    ],
)
async def test_path_and_query_are_passed_as_they_are_written(proxied, target):
    await proxied.ask(f"GET {target}")
    assert proxied.ollama.requests[0].line == f"GET {target} HTTP/1.1".encode()


async def test_request_headers_pass_but_for_those_of_the_connection(proxied):
    headers = (
        b"User-Agent: ollama-python/0.6",
        b"Accept-Encoding: gzip",
        b"Cookie: a=b",
        b"X-Twice: 1",
        b"X-Twice: 2",
        b"X-Bytes: caf\xe9 \xff",
        b"Authorization: Bearer theirs",
        b"TE: trailers",
        b"Keep-Alive: 5",
        b"Upgrade: h2c",
        b"Proxy-Authorization: Basic eA==",
        b"Origin: http://localhost:3000",
    )
    await proxied.ask("GET /api/tags", None, headers)
    sent = proxied.ollama.requests[0]
    assert sent.headers == [
        (b"host", b"127.0.0.1:%d" % proxied.ollama.port),
        (b"user-agent", b"ollama-python/0.6"),
        (b"accept-encoding", b"gzip"),
        (b"cookie", b"a=b"),
        (b"x-twice", b"1"),
        (b"x-twice", b"2"),
        (b"x-bytes", b"caf\xe9 \xff"),
        (b"authorization", b"Bearer theirs"),
        (b"origin", b"http://localhost:3000"),
        (b"x-cragside-hops", hops.marked().encode()),
    ]


@pytest.mark.parametrize("prompt", ["hi", "/rag hi"])
async def test_headers_that_are_for_us_stay_here_with_and_without_a_command(start, prompt):
    proxied = await start(api_token="s3cret")
    ours = (b"X-RAG-Workspace: acme", b"LIGHTRAG-WORKSPACE: acme", b"X-Rag-Persona: strict-en", b"X-API-Key: s3cret")
    await proxied.post("/api/generate", {"prompt": prompt}, (*ours, b"X-Rag-Else: stays"))
    sent = proxied.ollama.requests[0]
    assert {name for name, _ in sent.headers} == {
        b"host",
        b"content-length",
        b"x-rag-else",
        b"x-cragside-hops",
    }


async def test_headers_named_by_connection_are_not_forwarded(proxied):
    raw = (
        b"POST /x HTTP/1.1\r\nHost: localhost\r\nX-Hop: 1\r\nX-Stays: 1\r\nContent-Length: 2\r\n"
        b"Connection: close, X-Hop, Content-Length\r\n\r\nhi"
    )
    await proxied.raw(raw)
    sent = proxied.ollama.requests[0]
    assert (sent.header(b"x-hop"), sent.header(b"x-stays"), sent.body) == ([], [b"1"], b"hi")


async def test_response_headers_pass_and_none_are_added(proxied):
    proxied.ollama.answer = (
        b"HTTP/1.1 418 Teapot\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
        b"X-Bytes: \xe9\xff\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\nKeep-Alive: timeout=5\r\n"
        b"Connection: keep-alive\r\n\r\n\x1f\x8b\x00\xff"
    )
    reply = await proxied.ask("GET /x")
    assert reply.headers == [
        (b"date", b"Thu, 01 Jan 2026 00:00:00 GMT"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
        (b"x-bytes", b"\xe9\xff"),
        (b"content-encoding", b"gzip"),
        (b"content-length", b"4"),
        (b"connection", b"close"),
    ]
    assert (reply.status, reply.body) == (418, b"\x1f\x8b\x00\xff")


@pytest.mark.parametrize("status", [201, 204, 301, 304, 307, 400, 404, 500, 503])
async def test_every_status_passes_and_redirects_are_not_followed(proxied, status):
    body = b"" if status in (204, 304) else b"body"
    length = b"" if status == 204 else b"Content-Length: 4\r\n"
    proxied.ollama.answer = b"HTTP/1.1 %d X\r\nLocation: /elsewhere\r\n%b\r\n%b" % (status, length, body)
    reply = await proxied.ask("GET /x")
    assert (reply.status, reply.body, reply.header(b"location")) == (status, body, [b"/elsewhere"])
    assert len(proxied.ollama.requests) == 1


async def test_a_body_that_ends_with_the_connection_is_complete(proxied):
    async def until_close(_request, writer):
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")
        writer.close()

    proxied.ollama.answer = until_close
    assert (await proxied.ask("GET /x")).body == b"all of it"


async def test_interim_answers_are_skipped(proxied):
    proxied.ollama.answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )
    reply = await proxied.ask("GET /x")
    assert (reply.status, reply.body, reply.header(b"link")) == (200, b"ok", [])


async def test_connections_to_ollama_are_used_again(proxied):
    for _ in range(5):
        await proxied.ask("GET /api/version")
    assert proxied.ollama.connections == 1


async def test_a_connection_that_has_rested_for_too_long_is_not_used_again():
    server = await asyncio.start_server(StubOllama().serve, "127.0.0.1", 0)
    upstream = Upstream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", keep_seconds=60)
    kept = await upstream.connection()
    upstream.release(kept)
    kept.idle_since -= 30
    assert await upstream.connection() is kept
    upstream.release(kept)
    kept.idle_since -= 61
    another = await upstream.connection()
    assert another is not kept
    upstream.release(another)
    upstream.close()
    server.close()


async def test_a_connection_that_nobody_uses_again_is_closed():
    ollama = StubOllama()
    server = await asyncio.start_server(ollama.serve, "127.0.0.1", 0)
    upstream = Upstream(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", keep_seconds=0.01)
    upstream.release(await upstream.connection())
    async with asyncio.timeout(5):
        await ollama.disconnected.wait()
    upstream.close()
    server.close()


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        pytest.param("HEAD /x", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", id="an answer without a body"),
        pytest.param("GET /x", b"HTTP/1.1 700 ?\r\nContent-Length: 9\r\n\r\nab", id="the rest is not waited for"),
    ],
)
async def test_a_connection_that_cannot_be_used_again_is_closed_at_once(proxied, asked, answer):
    proxied.ollama.answer = answer
    await proxied.ask(asked)
    async with asyncio.timeout(5):
        await proxied.ollama.disconnected.wait()


STREAMED = b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("answered", "connections"),
    [(b"Server: llama.cpp\r\n" + STREAMED, 2), (STREAMED, 1), (b"Server: llama.cpp\r\nContent-Length: 0\r\n\r\n", 1)],
)
async def test_a_connection_that_llama_cpp_is_about_to_close_is_not_used_again(proxied, answered, connections):
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5, max=100\r\n" + answered
    for _ in range(2):
        assert (await proxied.ask("GET /x")).status == 200
    assert proxied.ollama.connections == connections


async def test_a_client_that_expects_100_continue_is_answered(proxied):
    reader, writer = await proxied.open()
    writer.write(b"POST /x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(b"hi")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    assert proxied.ollama.requests[0].header(b"expect") == []
    writer.close()


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_uploads_of_any_size_arrive_whole(proxied, size, framing):
    blob = bytes(range(256)) * (size // 256) + bytes(size % 256)
    if framing == "length":
        await proxied.ask("POST /api/blobs/sha256:abc", blob)
    else:
        head = (
            b"POST /api/blobs/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await proxied.raw(head + chunks(blob, 65_536))
    assert proxied.ollama.requests[0].body == blob


async def test_an_upload_is_streamed_to_ollama(proxied):
    _, writer = await proxied.open()
    arrived = asyncio.Event()

    async def early(request, stub_writer):
        arrived.set()

    proxied.ollama.answer = early
    writer.write(b"PUT /blob HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    async with asyncio.timeout(5):
        while not proxied.ollama.connections:
            await asyncio.sleep(0.01)
    writer.write(b"0\r\n\r\n")
    async with asyncio.timeout(5):
        await arrived.wait()
    assert proxied.ollama.requests[0].body == b"abc"
    writer.close()


async def test_each_piece_of_a_stream_arrives_before_the_next_is_made(proxied):
    step = asyncio.Event()

    async def one_by_one(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            writer.write(b"2\r\nab\r\n")
            await step.wait()
            step.clear()
        writer.write(b"0\r\n\r\n")

    proxied.ollama.answer = one_by_one
    reader, writer = await proxied.open()
    writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    async with asyncio.timeout(5):
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(3):
            assert await reader.readuntil(b"ab\r\n") == b"2\r\nab\r\n"
            step.set()
        assert await reader.readuntil(b"0\r\n\r\n") == b"0\r\n\r\n"
    writer.close()


async def test_a_large_answer_passes_a_slow_client_whole(proxied):
    body = bytes(range(256)) * 16_384
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    reader, writer = await proxied.open()
    writer.write(b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    await asyncio.sleep(0.1)
    assert (await reader.read()).partition(b"\r\n\r\n")[2] == body
    writer.close()


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"])
async def test_a_client_that_leaves_ends_the_request_at_ollama(proxied, sent):
    left = asyncio.Event()

    async def never_ends(_request, writer):
        writer.write(sent)
        await writer.drain()
        assert await proxied.ollama.reader.read() == b""
        left.set()

    proxied.ollama.answer = never_ends
    reader, writer = await proxied.open()
    writer.write(b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
    async with asyncio.timeout(5):
        while not proxied.ollama.requests:
            await asyncio.sleep(0.01)
        if sent:
            await reader.readuntil(b"ab\r\n")
        writer.close()
        await left.wait()


async def test_a_client_that_leaves_in_mid_upload_ends_the_upload(proxied):
    _, writer = await proxied.open()
    writer.write(b"PUT /blob HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc")
    async with asyncio.timeout(5):
        while not proxied.ollama.connections:
            await asyncio.sleep(0.01)
        writer.close()
        await proxied.ollama.disconnected.wait()
    assert proxied.ollama.requests == []


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nnonsense\r\n",
    ],
)
async def test_a_stream_that_breaks_off_does_not_end_regularly(proxied, begun):
    async def breaks_off(_request, writer):
        writer.write(begun)
        await writer.drain()
        writer.close()

    proxied.ollama.answer = breaks_off
    answer = await proxied.raw(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"0\r\n\r\n" not in answer
    assert b"Internal Server Error" not in answer


async def test_surplus_bytes_after_an_answer_reach_no_other_client(proxied):
    smuggled = b"HTTP/1.1 200 OK\r\nX-Smuggled: 1\r\nContent-Length: 4\r\n\r\nevil"
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + smuggled
    for _ in range(3):
        reply = await proxied.ask("GET /x")
        assert (reply.body, reply.header(b"x-smuggled")) == (b"ok", [])


async def test_the_address_may_have_a_path_and_credentials(start):
    proxied = await start(base="http://us%40er:p%3Ass@127.0.0.1:{port}/ollama/")
    await proxied.ask("GET /api/tags", None, (b"Authorization: Bearer ollama", b"X-API-Key: anthropics"))
    sent = proxied.ollama.requests[0]
    assert sent.line == b"GET /ollama/api/tags HTTP/1.1"
    assert (sent.header(b"authorization"), sent.header(b"x-api-key")) == ([b"Basic dXNAZXI6cDpzcw=="], [])


async def test_a_body_above_the_limit_passes_unread(start):
    proxied = await start(max_body_bytes=2048)
    body = json.dumps({"model": "m", "prompt": "/rag x", "images": ["A" * 100_000]}).encode()
    reply = await proxied.ask("POST /api/generate", body)
    assert (reply.status, reply.header(b"x-rag-degraded")) == (200, [b"request"])
    assert proxied.ollama.requests[0].body == body
    assert proxied.enricher.calls == []
    assert (await proxied.ask("POST /api/create", body)).header(b"x-rag-degraded") == []
    assert (await proxied.ask("POST /api/generate", body, (b"X-RAG: never",))).header(b"x-rag-degraded") == []


async def test_own_routes_do_not_reach_ollama(proxied):
    assert (await proxied.ask("GET /healthz")).json == {"ok": True}
    assert (await proxied.post("/v1/enrich", {})).json == {"from": "cragside"}
    assert (await proxied.ask("GET /openapi.json")).status == 200
    assert proxied.ollama.requests == []


async def test_a_body_with_an_offer_to_upgrade_arrives(proxied):
    """Java's HttpClient offers h2c with every first request."""
    offer = (b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA")
    body = b'{"model":"m","prompt":"hello"}'
    assert (await proxied.ask("POST /api/generate", body, (*offer,))).status == 200
    assert proxied.ollama.requests[0].body == body
