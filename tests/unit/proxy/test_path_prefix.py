"""A server below a path of a reverse proxy."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from proxy_stub import Proxied, listening
from pydantic import ValidationError

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.http.request_access import OPEN_ROUTES
from cragside.entrypoints.proxy import server
from cragside.entrypoints.proxy.routes import KNOWN
from cragside.settings import Settings

Start = Callable[..., Awaitable[Proxied]]


@pytest.mark.parametrize(
    ("line", "arrives"),
    [
        ("GET /rag/api/tags?x=/rag/y", b"GET /api/tags?x=/rag/y HTTP/1.1"),
        ("GET /api/tags", b"GET /api/tags HTTP/1.1"),
        ("GET /rag/a%2Fb", b"GET /a%2Fb HTTP/1.1"),
        ("GET /ragtime", b"GET /ragtime HTTP/1.1"),
        ("GET /%72ag/api/tags", b"GET /%72ag/api/tags HTTP/1.1"),
        ("GET /rag/rag/api/tags", b"GET /rag/api/tags HTTP/1.1"),
        ("GET /rag/", b"GET / HTTP/1.1"),
    ],
)
async def test_ollama_gets_the_path_without_the_prefix(start: Start, line: str, arrives: bytes) -> None:
    proxied = await start(path_prefix="/rag")
    application, _ = server._application(proxied.container, "127.0.0.1", None)
    async with listening(application) as proxied.port:
        await proxied.ask(line)
    assert [request.line for request in proxied.ollama.requests] == [arrives]


async def test_our_own_routes_are_below_the_prefix(start: Start) -> None:
    proxied = await start(path_prefix="/tools/rag", api_token="secret")
    application, _ = server._application(proxied.container, "127.0.0.1", None)
    async with listening(application) as proxied.port:
        alive = await proxied.ask("GET /tools/rag/healthz")
        refused = await proxied.ask("GET /tools/rag/v1/settings")
        bare = await proxied.ask("GET /tools/rag?x=1")
        browser = await proxied.ask("GET /tools/rag/", headers=(b"Accept: text/html",))
    assert [alive.status, refused.status, bare.status, browser.status] == [200, 401, 308, 307]
    assert all(reply.header(b"x-request-id") for reply in (alive, refused, bare, browser))
    assert bare.header(b"location") == [b"/tools/rag/"]
    assert browser.header(b"location") == [b"console/"]
    assert create_app(proxied.container).openapi()["servers"] == [{"url": "/tools/rag"}]


@pytest.mark.parametrize("prefix", ["rag", "/", "/rag/", "/a b", "//x", "/%72ag", "/rag?x", "/..", "/a/."])
def test_a_prefix_that_is_no_path_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError):
        Settings(path_prefix=prefix)  # type: ignore[call-arg]


def test_a_prefix_cannot_be_the_beginning_of_another_path(tmp_path: Path) -> None:
    app = create_app(Container(Settings(home=tmp_path)))  # type: ignore[call-arg]
    beginnings = {path.split("/")[1] for path in (*app.openapi()["paths"], *OPEN_ROUTES, *KNOWN, "/openapi.json")}
    for beginning in filter(None, beginnings):
        with pytest.raises(ValidationError, match="choose another one"):
            Settings(path_prefix=f"/{beginning}/x")  # type: ignore[call-arg]
