"""Browsers get a page where Ollama's clients get Ollama's answer."""

from collections.abc import Awaitable, Callable

import pytest
from proxy_stub import Proxied, listening

from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.proxy.app import create_proxy

HTML = b"Accept: text/html,application/xhtml+xml,*/*;q=0.8"
RUNNING = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 17\r\n\r\nOllama is running"
Start = Callable[..., Awaitable[Proxied]]


async def test_a_browser_is_sent_to_our_page(proxied: Proxied) -> None:
    proxied.ollama.answer = RUNNING
    reply = await proxied.ask("GET /", headers=(HTML,))
    assert (reply.status, reply.header(b"location"), reply.header(b"vary")) == (307, [b"console/"], [b"Accept"])
    assert proxied.ollama.requests == []


@pytest.mark.parametrize("headers", [(), (b"Accept: */*",), (b"Accept: application/json",)])
async def test_ollamas_clients_get_ollamas_answer(proxied: Proxied, headers: tuple[bytes, ...]) -> None:
    proxied.ollama.answer = RUNNING
    assert (await proxied.ask("GET /", headers=headers)).body == b"Ollama is running"


async def test_a_form_that_a_browser_sends_is_ollamas(proxied: Proxied) -> None:
    await proxied.ask("POST /", b"x=1", headers=(HTML,))
    assert len(proxied.ollama.requests) == 1


async def test_the_page_lists_every_route_and_needs_no_token(start: Start) -> None:
    proxied = await start(api_token="secret")
    app = create_app(proxied.container, keys=Keys(proxied.container))
    async with listening(create_proxy(proxied.container, app, keys=Keys(proxied.container))) as proxied.port:
        page = await proxied.ask("GET /docs", headers=(HTML,))
        icon = await proxied.ask("GET /favicon.ico")
        document = await proxied.ask("GET /openapi.json")
    assert (page.status, icon.status, document.status) == (200, 200, 401)
    assert page.header(b"content-type") == [b"text/html; charset=utf-8"]
    assert icon.header(b"content-type") == [b"image/svg+xml"]
    assert b"default-src 'none'" in page.header(b"content-security-policy")[0]
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>".encode() in page.body
    assert proxied.ollama.requests == []


@pytest.mark.attack("foreign origins")
async def test_a_rebound_name_is_not_redirected(proxied: Proxied) -> None:
    reply = await proxied.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n" + HTML + b"\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 403")
