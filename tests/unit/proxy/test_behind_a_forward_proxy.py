"""The proxy reaches a public host by the HTTP proxy of the environment."""

import asyncio
import ssl
import subprocess

import pytest

from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.proxy.upstream import Upstream
from tests.services.http_proxy import HttpProxy
from tests.services.tools import free_port

PUBLIC = "http://models.example.com:{port}"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def test_plain_requests_name_the_host_and_carry_the_proxys_credentials(start, monkeypatch):
    async with HttpProxy(0, "user:hush") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        proxied = await start(base=PUBLIC + "/below")
        proxy.port_behind = proxied.ollama.port
        proxied.ollama.answer = ANSWER
        reply = await proxied.ask("POST /api/chat?a=b", b"{}")
    assert (reply.status, reply.body) == (200, b"ok")
    authority = f"models.example.com:{proxied.ollama.port}"
    assert proxy.lines == [f"POST http://{authority}/below/api/chat?a=b HTTP/1.1"]
    request = proxied.ollama.requests[0]
    assert request.header(b"host") == [authority.encode()]
    assert request.header(b"proxy-authorization") == []
    assert request.body == b"{}"


async def test_a_local_host_is_asked_directly(start, monkeypatch):
    async with HttpProxy(0) as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        proxied = await start()
        assert (await proxied.ask("GET /api/tags")).status == 200
    assert proxy.lines == []


@pytest.mark.parametrize("value", ["socks5://127.0.0.1:1080", "socks://127.0.0.1", "http://host:port", "://"])
async def test_a_proxy_that_is_not_https_changes_nothing(start, monkeypatch, value):
    monkeypatch.setenv("ALL_PROXY", value)
    monkeypatch.setenv("NO_PROXY", "[::1],[")
    assert (await (await start()).ask("GET /api/tags")).status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_refuses_is_an_outage_without_its_credentials(start, monkeypatch, caplog, scheme):
    caplog.set_level("DEBUG")
    async with HttpProxy(1, "user:other") as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url.replace("other", "hush"))
        proxied = await start(base=f"{scheme}://models.example.com")
        reply = await proxied.ask("GET /api/tags")
    assert reply.status == 502
    assert b"407" in reply.body
    assert b"hush" not in reply.body
    assert "hush" not in caplog.text


async def test_a_proxy_that_does_not_answer_is_named(start, monkeypatch):
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:hush@127.0.0.1:{port}")
    reply = await (await start(base="https://models.example.com")).ask("GET /api/tags")
    assert reply.status == 502
    assert f"refused through the proxy http://127.0.0.1:{port}" in reply.body.decode()


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 4096, b"HTTP/1.1 200 OK\r\n\r\n"]
)
async def test_a_proxy_that_answers_anything_else_is_an_outage(monkeypatch, answer):
    async def answering(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answering, "127.0.0.1", 0) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(ServiceUnavailable, match="proxy"):
            await Upstream("https://models.example.com").connection()


@pytest.fixture
def certificate(tmp_path):
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
        "/CN=models.example.com", "-addext", "subjectAltName=DNS:models.example.com", "-days", "2",
        "-keyout", tmp_path / "key.pem", "-out", tmp_path / "certificate.pem",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return tmp_path


async def test_with_tls_the_proxy_sees_the_name_of_the_host_alone(start, certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "certificate.pem"))
    asked = []

    async def answering(reader, writer):
        for _ in range(2):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(ANSWER)

    async with (
        await asyncio.start_server(answering, "127.0.0.1", 0, ssl=context) as server,
        HttpProxy(server.sockets[0].getsockname()[1], "user:hush") as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        proxied = await start(base="https://models.example.com/below")
        for _ in range(2):
            assert (await proxied.ask("GET /api/tags")).body == b"ok"
    assert proxy.lines == ["CONNECT models.example.com:443 HTTP/1.1"]
    for head in asked:
        assert head.startswith(b"GET /below/api/tags HTTP/1.1\r\nhost: models.example.com\r\n")
        assert b"proxy-authorization" not in head.lower()
