"""Every cell of the table in docs/security.md: who may call what, from where, with which token."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from proxy_stub import OK, StubOllama, faked
from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.entrypoints.access import Keys
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.proxy.app import Proxy
from cragside.settings import Settings
from tests.unit.http.test_http_app import container

PAGE = Path(__file__).parents[3] / "docs/security.md"
HERE, LAN, EVIL, APP = "127.0.0.1:8642", "rag.lan:8642", "evil.example:8642", "https://app.example"
TOKEN = "s3cret"
KEYED: dict[str, Any] = {"openai_api_key": SecretStr("sk-hush")}
FOREIGN_COLUMNS = ("other page", "`null`")

CALLERS = {
    "a program": {"Host": HERE},
    "same origin": {"Host": LAN, "Origin": f"http://{LAN}", "Sec-Fetch-Site": "same-origin"},
    "this machine": {"Host": HERE, "Origin": "http://localhost:3000", "Sec-Fetch-Site": "cross-site"},
    "listed origin": {"Host": HERE, "Origin": APP, "Sec-Fetch-Site": "cross-site"},
    "other page": {"Host": HERE, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    "`null`": {"Host": HERE, "Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "rebound name": {"Host": EVIL, "Origin": f"http://{EVIL}", "Sec-Fetch-Site": "same-origin"},
}


def prompt(text: str) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


REQUESTS: dict[str, tuple[str, str, bytes]] = {
    "`GET /healthz`": ("GET", "/healthz", b""),
    "`GET /ready`": ("GET", "/ready", b""),
    "`GET /docs`, `GET /favicon.ico`": ("GET", "/docs", b""),
    "`GET /console/` and its files": ("GET", "/console/", b""),
    "own route, reading": ("GET", "/v1/documents", b""),
    "own route, writing": ("POST", "/v1/documents", b'{"text": "planted", "name": "p.txt"}'),
    "prompt with `/rag`": ("POST", "/api/chat", prompt("/rag what?")),
    "prompt without": ("POST", "/api/chat", prompt("what?")),
    "other route of Ollama's": ("GET", "/api/tags", b""),
    "preflight, own route": ("OPTIONS", "/v1/documents", b""),
    "preflight, Ollama's route": ("OPTIONS", "/api/chat", b""),
    "prompt without, host with a credential": ("POST", "/v1/chat/completions", prompt("what?")),
    "other route, host with a credential": ("GET", "/v1/models", b""),
    "`DELETE`, host with a credential": ("DELETE", "/v1/files/file-1", b""),
    "preflight, host with a credential": ("OPTIONS", "/v1/chat/completions", b""),
}
WITH_CREDENTIAL = ", host with a credential"
OLLAMAS = ("prompt with `/rag`", "prompt without", "other route of Ollama's")
# The statuses without tokens, with the right one and with a wrong one; "Ollama" where the request arrives there.
MEANINGS: dict[str, tuple[int | str, int | str, int | str]] = {
    "open": (200, 200, 200),
    "token": (200, 200, 401),
    "only with a token": (403, 200, 401),
    "403": (403, 403, 403),
    "refused": (403, 403, 401),
    "204": (204, 204, 204),
    "only with a token: 204": (403, 204, 204),
    "Ollama": ("Ollama", "Ollama", "Ollama"),
    "only with a token: Ollama": (403, "Ollama", "Ollama"),
}


def cells() -> Iterator[tuple[str, str, str]]:
    lines = PAGE.read_text().split("## Who may call what, from where\n")[1].split("\n## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    for row in table[2:]:
        yield from ((row[0], caller, said) for caller, said in zip(table[0][1:], row[1:], strict=True) if said != "-")


CELLS = list(cells())


def test_the_table_has_every_request_and_every_caller() -> None:
    assert {request for request, _, _ in CELLS} == REQUESTS.keys()
    assert {caller for _, caller, _ in CELLS} == CALLERS.keys()
    assert len(CELLS) == len(REQUESTS) * len(CALLERS) - 3  # programs send no preflights


@dataclass
class OwnRoutes:
    """Stands for cragside's routes, and counts what reaches them."""

    requests: list[str] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


@dataclass
class Service:
    """The proxy, what stands behind it, and a client."""

    http: httpx.AsyncClient
    own: OwnRoutes
    ollama: StubOllama
    container: Container

    async def ask(self, request: str, caller: dict[str, str], token: str | None = None) -> httpx.Response:
        method, path, body = REQUESTS[request]
        headers = dict(caller)
        if body:
            headers["Content-Type"] = "application/json"
        if method == "OPTIONS":
            headers["Access-Control-Request-Method"] = "POST"
            headers["Access-Control-Request-Headers"] = "authorization,content-type"
        elif token:
            headers["Authorization"] = f"Bearer {token}"
        return await self.http.request(method, path, content=body or None, headers=headers)

    @property
    def did_nothing(self) -> bool:
        return not (
            self.own.requests
            or self.ollama.requests
            or self.container.enricher.calls
            or self.container.memory.exchanges
        )


@asynccontextmanager
async def service(answer: bytes = OK, **settings: Any) -> AsyncIterator[Service]:
    ollama = StubOllama(answer)
    server = await asyncio.start_server(ollama.serve, "127.0.0.1", 0)
    ollama.port = server.sockets[0].getsockname()[1]
    address = f"http://127.0.0.1:{ollama.port}"
    if "openai_api_key" in settings:
        settings["model_host"] = f"openai+{address}/v1"
    container = faked(Settings(ollama_base_url=address, allow_origins=APP, **settings))
    own = OwnRoutes()
    proxy = Proxy(container, own, keys=Keys(container), bound_host="rag.lan")
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=proxy), base_url="http://127.0.0.1") as http:
            yield Service(http, own, ollama, container)
    finally:
        server.close()


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("tokens", ["none", "right", "wrong"])
@pytest.mark.parametrize(("request_kind", "caller", "said"), CELLS)
async def test_a_cell_of_the_table(request_kind: str, caller: str, said: str, tokens: str) -> None:
    expected = MEANINGS[said][("none", "right", "wrong").index(tokens)]
    settings = {} if tokens == "none" else {"api_token": TOKEN}
    if request_kind.endswith(WITH_CREDENTIAL):
        settings |= KEYED
    async with service(store_exchanges=True, **settings) as running:
        answer = await running.ask(
            request_kind, CALLERS[caller], {"none": None, "right": TOKEN, "wrong": "wrong"}[tokens]
        )
        if expected == "Ollama":
            assert [sent.line.split()[0] for sent in running.ollama.requests] == [b"OPTIONS"]
            return
        assert answer.status_code == expected
        if expected != 200:
            assert running.did_nothing
        elif request_kind in OLLAMAS or request_kind.endswith(WITH_CREDENTIAL):
            assert len(running.ollama.requests) == 1
            assert len(running.container.enricher.calls) == (request_kind == "prompt with `/rag`")
        else:
            assert running.own.requests == [REQUESTS[request_kind][1]]
        if caller in FOREIGN_COLUMNS:
            assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize(
    ("request_kind", "caller", "said"),
    [cell for cell in CELLS if "own route" in cell[0] or "healthz" in cell[0] if cell[1] != "rebound name"],
)
async def test_the_application_behind_a_gateway_keeps_the_same_rules(request_kind: str, caller: str, said: str) -> None:
    app = create_app(container(allow_origins=APP, api_token=TOKEN))
    method, path, _ = REQUESTS[request_kind]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as http:
        asked = {"Access-Control-Request-Method": "POST"} if method == "OPTIONS" else {"X-API-Key": "wrong"}
        answer = await http.request(method, path, headers={**CALLERS[caller], **asked})
    assert answer.status_code == MEANINGS[said][2]


@pytest.mark.parametrize("kind", ["own route, reading", "prompt with `/rag`"])
@pytest.mark.parametrize("caller", ["this machine", "listed origin"])
async def test_pages_that_may_call_can_read_the_answer(kind: str, caller: str) -> None:
    async with service() as running:
        answer = await running.ask(kind, CALLERS[caller])
    assert answer.headers.get_list("access-control-allow-origin") == [CALLERS[caller]["Origin"]]
    assert answer.headers["vary"] == "Origin"
    exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
    assert {"x-rag-verdict", "x-rag-documents", "x-rag-degraded"} <= set(exposed)


@pytest.mark.parametrize("kind", ["own route, reading", "prompt with `/rag`", "prompt without"])
async def test_pages_that_may_call_can_read_why_they_were_refused(kind: str) -> None:
    async with service(api_token=TOKEN) as running:
        answer = await running.ask(kind, CALLERS["this machine"])
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"


async def test_ollamas_own_headers_are_not_doubled() -> None:
    told = b"Access-Control-Allow-Origin: http://localhost:3000\r\nVary: Origin\r\nAccess-Control-Expose-Headers: X-Its"
    async with service(OK.replace(b"Content-Type", told + b"\r\nContent-Type", 1)) as running:
        enriched = await running.ask("prompt with `/rag`", CALLERS["this machine"])
        plain = await running.ask("prompt without", CALLERS["this machine"])
    for answer in (enriched, plain):
        assert answer.headers.get_list("access-control-allow-origin") == ["http://localhost:3000"]
        assert answer.headers.get_list("vary") == ["Origin"]
    assert plain.headers["access-control-expose-headers"] == "X-Its"
    assert enriched.headers.get_list("access-control-expose-headers") == [
        "X-Its, X-Rag-Verdict, X-Rag-Documents, X-Rag-Memory, X-Rag-Degraded, X-Request-ID, Retry-After"
    ]


async def test_a_preflight_answer_names_the_requested_headers() -> None:
    async with service() as running:
        answer = await running.ask("preflight, own route", CALLERS["listed origin"])
    assert answer.headers["access-control-allow-origin"] == APP
    assert answer.headers["access-control-allow-headers"] == "authorization,content-type"
    assert {"POST", "PATCH", "DELETE"} <= set(answer.headers["access-control-allow-methods"].split(", "))
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.content == b""


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize(
    "headers",
    [
        {"Access-Control-Request-Method": ""},
        {"Origin": ""},
        {"Content-Length": "5"},
        {"Transfer-Encoding": "chunked"},
    ],
)
async def test_an_incomplete_preflight_needs_the_token(headers: dict[str, str]) -> None:
    asked = {"Host": HERE, "Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST", **headers}
    async with service(api_token=TOKEN) as running:
        for path in ("/api/chat", "/v1/documents"):
            answer = await running.http.request(
                "OPTIONS", path, headers={name: value for name, value in asked.items() if value}
            )
            assert answer.status_code == 401
        assert running.did_nothing


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/v1/chat/completions"])
async def test_a_foreign_page_gets_no_evidence_whatever_the_route_and_the_type(path: str) -> None:
    body = json.dumps({"model": "m", "prompt": "/rag x", "messages": [{"role": "user", "content": "/rag x"}]})
    async with service() as running:
        answer = await running.http.post(
            path, content=body, headers={"Host": HERE, "Origin": "https://evil.example", "Content-Type": "text/plain"}
        )
        assert answer.status_code == 403
        assert "RAG_ALLOW_ORIGINS" in answer.text
        assert running.did_nothing


@pytest.mark.attack("foreign origins")
async def test_an_exchange_of_a_foreign_page_is_not_remembered() -> None:
    whole = b'{"message": {"role": "assistant", "content": "It was lit by water power, in 1878."}, "done": true}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole) + whole
    async with service(answer, store_exchanges=True) as running:
        await running.ask("prompt without", {**CALLERS["other page"], "X-RAG-Workspace": "planted"})
        await running.ask("prompt without", {**CALLERS["this machine"], "X-RAG-Workspace": "mine"})
        async with asyncio.timeout(10):
            await running.container.memory.news.wait()
        assert [workspace for workspace, _ in running.container.memory.exchanges] == ["mine"]
