"""Request ids, and the line that the log has for each request."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from proxy_stub import Proxied, Reply, listening

from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.log import logged
from cragside.entrypoints.proxy.app import create_proxy
from cragside.entrypoints.proxy.clients import Clients
from cragside.entrypoints.proxy.connection_limits import ConnectionLimits
from cragside.entrypoints.proxy.observed import Observer
from cragside.ports.clock import SYSTEM_CLOCK

GIVEN = b"X-Request-ID: trace-7.b_C"


Lines = Callable[[], str]
Start = Callable[..., Awaitable[Proxied]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """Return the lines on standard error since the last call, as JSON from the level info on."""
    with logged("info", "json"):
        yield lambda: capsys.readouterr().err


def told(written: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.splitlines()]


async def observed(start: Start, *lines: str, slow: float = 60.0, **settings: Any) -> list[Reply]:
    """The replies of an observed proxy with our own routes, in front of a stub Ollama."""
    proxied = await start(**settings)
    container = proxied.container
    app = create_proxy(container, create_app(container, keys=Keys(container)), keys=Keys(container))
    replies = []
    async with listening(Observer(slow).wrap(app)) as proxied.port:
        for line in lines:
            body = b'{"model": "m", "prompt": "/rag why secret?"}' if line.startswith("POST") else None
            replies.append(await proxied.ask(line, body, (b"Content-Type: application/json", GIVEN)))
    return replies


@pytest.mark.parametrize(
    ("line", "status", "settings"),
    [
        ("GET /healthz", 200, {}),
        ("POST /v1/enrich", 200, {}),
        ("GET /v1/nothing-of-ours", 200, {}),
        ("POST /api/generate", 200, {}),
        ("DELETE /v1/enrich", 405, {}),
        ("GET /v1/documents", 401, {"api_token": "x"}),
        ("GET /api/tags", 401, {"api_token": "x"}),
    ],
)
async def test_each_answer_has_the_clients_id(start: Start, line: str, status: int, settings: dict[str, Any]) -> None:
    [reply] = await observed(start, line, **settings)
    assert (reply.status, reply.header(b"x-request-id")) == (status, [b"trace-7.b_C"])


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "line\u00adbreak", 'quote"', "<b>"])
async def test_an_unsafe_id_is_replaced(given: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-Request-Id", b"upstream's")]})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx.ASGITransport(Observer(60.0).wrap(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        sent = {"X-Request-ID": given.encode("latin-1")}
        answers = [await client.get("/", headers=sent) for _ in range(2)]  # type: ignore[arg-type]
    ids = [answer.headers.get_list("x-request-id") for answer in answers]
    assert [len(each) for each in ids] == [1, 1]
    assert len(ids[0][0]) == 16
    assert ids[0] != ids[1]


async def test_a_failure_has_the_id_too_and_its_message_stays_out_of_the_log(lines: Lines) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("the prompt was: secret")

    async with listening(Observer(60.0).wrap(app)) as port, httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}/v1/settings", headers={"X-Request-ID": "one"})
        logging.getLogger("cragside").exception("seen", exc_info=RuntimeError("the prompt was: secret"))
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "one")
    assert answer.json()["error"]["type"] == "processing_error"
    written = lines()
    assert "secret" not in written
    assert "RuntimeError" in written
    assert [(each["status"], each["request_id"]) for each in told(written) if "status" in each] == [(500, "one")]


async def test_a_full_server_refuses_with_an_id(lines: Lines) -> None:
    clients = Clients(ConnectionLimits(8), SYSTEM_CLOCK, Observer(60.0).wrap)

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with httpx.AsyncClient(transport=httpx.ASGITransport(clients.observe(refuse))) as client:
        answer = await client.get("http://127.0.0.1/api/tags")
    assert len(answer.headers["x-request-id"]) == 16
    assert [(each["status"], each["level"]) for each in told(lines())] == [(503, "warning")]


async def test_a_request_is_one_line_without_its_query_its_prompt_or_its_token(start: Start, lines: Lines) -> None:
    await observed(start, "POST /v1/enrich?token=sesame", "GET /api/tags?token=sesame", "GET /healthz")
    written = lines()
    first, second = told(written)
    assert (first["method"], first["route"], first["status"]) == ("POST", "/v1/enrich", 200)
    assert (first["verdict"], first["documents"], first["degraded"]) == ("local", 1, [])
    assert first["request_id"] == "trace-7.b_C"
    assert (second["route"], second["client"]) == ("/api/tags", "127.0.0.1")
    assert "slow" not in first
    assert not any(word in written for word in ("sesame", "secret", "passage"))


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/ready"])
async def test_a_probe_is_logged_only_if_it_fails(lines: Lines, path: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        status = 401 if scope["query_string"] else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx.ASGITransport(Observer(60.0).wrap(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        await client.get(path)
        await client.get(f"{path}?refuse")
    assert [(each["route"], each["status"]) for each in told(lines())] == [(path, 401)]


async def test_an_error_has_the_id_of_its_line_in_the_log(start: Start) -> None:
    [reply] = await observed(start, "GET /v1/documents/doc-1")
    assert reply.status == 404
    assert json.loads(reply.body)["id"] == "trace-7.b_C"


async def test_a_route_of_ours_is_logged_as_its_template(lines: Lines) -> None:
    app = FastAPI()

    @app.get("/graph/entity/{name:path}")
    async def entity(name: str) -> str:
        return name

    transport = httpx.ASGITransport(Observer(60.0).wrap(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/graph/entity/A%20private%20name")).json() == "A private name"
    assert [each["route"] for each in told(lines())] == ["/graph/entity/{name:path}"]


async def test_a_slow_request_names_its_steps(start: Start, lines: Lines) -> None:
    await observed(start, "POST /api/generate", "GET /v1/settings", slow=0.0)
    chat, ours = told(lines())
    assert {"model host", "sending the answer", "retrieve", "grade"} == set(chat["slow"])
    assert next(iter(chat["slow"])) == "retrieve"  # the fakes say that it took longest
    assert {"before the answer", "sending the answer"} == set(ours["slow"])


async def test_requests_that_fail_are_warnings(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    with logged("warning", "text"):
        await observed(start, "GET /api/tags", "GET /healthz", base="http://127.0.0.1:1/")
    [line] = [line for line in capsys.readouterr().err.splitlines() if " GET " in line]
    assert line.split(" ")[1:5] == ["WARNING", "GET", "/api/tags", "502"]
    assert line.endswith("request=trace-7.b_C")


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u2028", "\x85", "\n"])
def test_a_line_of_text_is_one_line(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    with logged("info", "text"):
        logging.getLogger("cragside").info("x%sforged", hostile)
        logging.getLogger("httpx").info("GET http://searx/?q=secret")
    [line] = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert line.endswith("forged")
