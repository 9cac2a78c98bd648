import asyncio
import json
import socket

import pytest
from proxy_stub import Proxied, Reply, StubOllama, faked, listening, own_app

from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.access import Keys
from cragside.entrypoints.proxy.app import Proxy
from cragside.entrypoints.proxy.upstream import Upstream
from cragside.settings import Settings

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
COMMANDED = {"model": "m", "prompt": "/rag x", "messages": [{"role": "user", "content": "/rag x"}]}


@pytest.fixture
async def nobody():
    """The proxy before an address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    container = faked(Settings(ollama_base_url=f"http://user:hush@127.0.0.1:{free}/base"))
    async with listening(Proxy(container, own_app(), keys=Keys(container))) as port:
        yield Proxied(port, StubOllama(), container), free


@pytest.mark.parametrize("payload", [CHAT, COMMANDED])
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/api/tags", "/whatever"])
async def test_a_dead_ollama_is_a_502_in_ollamas_shape(nobody, path, payload, caplog):
    proxied, free = nobody
    reply = await proxied.post(path, payload)
    assert reply.status == 502
    assert reply.json == {
        "error": "Ollama does not answer (connection refused). "
        "Start it with `ollama serve`, or set OLLAMA_BASE_URL to where it runs."
    }
    assert f"Ollama at http://127.0.0.1:{free}/base does not answer" in caplog.text
    assert "hush" not in caplog.text + reply.body.decode()


@pytest.mark.parametrize(
    ("asked", "body"),
    [
        pytest.param("GET /v1/models", None, id="a list of models"),
        pytest.param("POST /v1/chat/completions", json.dumps(CHAT).encode(), id="a prompt"),
    ],
)
async def test_a_dead_host_of_another_kind_is_not_called_ollama(start, caplog, asked, body):
    proxied = await start(model_host="openai+http://127.0.0.1:1/v1")
    reply = await proxied.ask(asked, body)
    assert reply.status == 502
    assert reply.json["error"]["message"] == (
        "The model host does not answer (connection refused). Start it, or set RAG_MODEL_HOST to where it runs."
    )
    assert "The model host at http://127.0.0.1:1 does not answer" in caplog.text
    assert "Ollama" not in caplog.text


@pytest.mark.parametrize("payload", [CHAT, COMMANDED])
async def test_a_dead_ollama_is_a_502_in_openais_shape(nobody, payload):
    reply = await nobody[0].post("/v1/chat/completions", payload)
    error = reply.json["error"]
    assert (reply.status, error["type"], error["param"], error["code"]) == (502, "api_error", None, "bad_gateway")
    assert "ollama serve" in error["message"]


async def test_a_dead_ollama_is_a_502_in_anthropics_shape(nobody):
    reply = await nobody[0].post("/v1/messages", CHAT)
    assert (reply.status, reply.json["type"], reply.json["error"]["type"]) == (502, "error", "api_error")


async def test_our_routes_work_without_ollama(nobody):
    assert (await nobody[0].ask("GET /healthz")).status == 200


async def test_a_large_upload_to_a_dead_ollama_is_answered(nobody):
    assert (await nobody[0].ask("POST /api/blobs/x", bytes(200_000))).status == 502


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
    ],
)
async def test_an_ollama_that_talks_nonsense_is_a_502(start, answer):
    proxied = await start()

    async def odd(_request, writer):
        writer.write(answer)
        writer.close()

    proxied.ollama.answer = odd
    reply = await proxied.post("/api/chat", CHAT)
    assert (reply.status, list(reply.json)) == (502, ["error"])


@pytest.mark.parametrize("piecemeal", [False, True], ids=["in one packet", "in several"])
@pytest.mark.parametrize("trailer", [b"Set-Cookie: a=b", b"Connection: x-t", b"X-T: 1", b"Content-Length: 3"])
async def test_a_trailer_never_becomes_a_header(start, trailer, piecemeal):
    proxied = await start()
    pieces = [
        b"HTTP/1.1 200 OK\r\nX-T: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"2\r\nok\r\n",
        b"0\r\n" + trailer + b"\r\n\r\n",
    ]

    async def trailing(_request, writer):
        for piece in pieces if piecemeal else [b"".join(pieces)]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)

    proxied.ollama.answer = trailing
    head, _, body = (await proxied.raw(b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).partition(
        b"\r\n\r\n"
    )
    reply = Reply(head, body)
    assert (reply.status, reply.header(b"x-t")) == (200, [b"0"])
    assert not {b"set-cookie", b"content-length"} & {name for name, _ in reply.headers}
    assert reply.header(b"connection") == [b"close"]
    assert body.startswith(b"2\r\nok\r\n")


async def test_a_request_on_a_closed_idle_connection_is_repeated(start):
    proxied = await start()

    async def once(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    proxied.ollama.answer = once
    for _ in range(3):
        assert (await proxied.ask("GET /x")).status == 200
        await asyncio.sleep(0.02)


async def test_a_token_is_asked_for_and_kept_from_ollama(start):
    proxied = await start(api_token="s3cret")
    for path, shape in [("/api/tags", str), ("/v1/models", dict), ("/", str)]:
        reply = await proxied.ask(f"GET {path}")
        assert (reply.status, type(reply.json["error"])) == (401, shape)
    assert (await proxied.ask("GET /health")).json["error"]["type"] == "unauthorized"
    assert (await proxied.ask("GET /healthz")).status == 200
    assert proxied.ollama.requests == []
    for header in (b"Authorization: Bearer s3cret", b"X-API-Key: s3cret"):
        assert (await proxied.ask("GET /api/tags", None, (header, b"X-Else: 1"))).status == 200
        sent = proxied.ollama.requests[-1]
        assert b"s3cret" not in sent.head
        assert sent.header(b"x-else") == [b"1"]


async def test_a_second_credential_is_forwarded_to_ollama(start):
    proxied = await start(api_token="s3cret")
    await proxied.ask("GET /api/tags", None, (b"Authorization: Bearer theirs", b"X-API-Key: s3cret"))
    sent = proxied.ollama.requests[0]
    assert (sent.header(b"authorization"), sent.header(b"x-api-key")) == ([b"Bearer theirs"], [])


async def test_a_rebound_name_is_refused(start):
    proxied = await start()
    raw = b"GET %b HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    for path in (b"/api/tags", b"/v1/enrich", b"/v1/models"):
        assert (await proxied.raw(raw % path)).startswith(b"HTTP/1.1 403")
    assert (await proxied.raw(raw % b"/healthz")).startswith(b"HTTP/1.1 200")
    assert proxied.ollama.requests == []


@pytest.mark.parametrize("host", ["host.docker.internal", "mymac.local:80", socket.gethostname(), "192.168.1.20"])
async def test_a_program_may_call_by_a_name_of_the_network(start, host):
    proxied = await start()
    raw = f"GET %s HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n%s\r\n"
    for path in ("/api/tags", "/healthz", "/v1/models"):
        assert (await proxied.raw((raw % (path, "")).encode())).startswith(b"HTTP/1.1 200")
    foreign = raw % ("/healthz", "Origin: http://evil.example\r\n")
    assert (await proxied.raw(foreign.encode())).startswith(b"HTTP/1.1 403")
    other = raw % ("/healthz", "Origin: http://localhost:3000\r\n")
    assert (await proxied.raw(other.encode())).startswith(b"HTTP/1.1 403"), (
        "this machine's pages call it as this machine"
    )


async def test_any_name_will_do_with_a_token(start):
    proxied = await start(api_token="s3cret")
    raw = b"GET /x HTTP/1.1\r\nHost: rag.example\r\nX-Api-Key: s3cret\r\nConnection: close\r\n\r\n"
    assert (await proxied.raw(raw)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused(start, raw):
    proxied = await start()
    assert (await proxied.raw(raw)).startswith(b"HTTP/1.1 400")
    assert proxied.ollama.requests == []


@pytest.mark.parametrize(
    "scope",
    [
        {"raw_path": b"@evil.example/x"},
        {"raw_path": b"/x y"},
        {"raw_path": b"/x\r\nX-Evil: 1"},
        {"headers": [(b"x", b"1\r\nx-evil: 2")]},
        {"headers": [(b"x", b"1\nx-evil: 2")]},
        {"query_string": b"a\r\nb"},
    ],
)
async def test_line_breaks_cannot_split_requests(start, scope):
    proxied = await start()
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    full = {
        "type": "http",
        "method": "GET",
        "path": "/x",
        "raw_path": b"/x",
        "query_string": b"",
        "headers": [],
        **scope,
    }
    await Proxy(proxied.container, own_app(), keys=Keys(proxied.container))(full, receive, send)
    assert sent[0]["status"] == 400
    assert proxied.ollama.requests == []


async def test_websockets_are_closed():
    sent = []

    async def send(message):
        sent.append(message)

    container = faked(Settings())
    proxy = Proxy(container, own_app(), keys=Keys(container))
    await proxy({"type": "websocket", "path": "/", "headers": []}, None, send)
    assert sent == [{"type": "websocket.close", "code": 1003}]


@pytest.mark.parametrize("address", ["ftp://x", "http://", "x"])
def test_an_invalid_address_is_refused(address):
    with pytest.raises(ConfigurationError):
        Upstream(address)
