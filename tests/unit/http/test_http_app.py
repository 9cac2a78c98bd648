import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings
from tests.fakes import FakeRepository, FakeWorkspaces, ScriptedGrader
from tests.knowledge import answer_of

KELP = "kelp grows fast"
AS_JSON = {"Content-Type": "application/json"}


def container(**settings: Any) -> Container:
    failure = settings.pop("failure", None)
    repository = FakeRepository(SourceText("kelp.md", KELP), failure=failure)
    return Container(
        Settings(**settings),  # type: ignore[call-arg]
        workspaces=FakeWorkspaces(repository),
        grader=ScriptedGrader({KELP: 0.9}),
    )


def client(built: Container) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=create_app(built), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client(container()) as opened:
        yield opened


async def test_a_commanded_prompt_is_enriched(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/enrich", json={"prompt": "/rag kelp?", "id": "r1", "x": {"y": 1}})
    body = answer.json()
    assert answer.status_code == 200
    assert KELP in body["prompt"]
    assert body["prompt"].endswith("kelp?")
    assert body["x"] == {"y": 1}
    assert body["metadata"]["rag_context"]["verdict"] == "local"


ASKED = {"X-RAG": "always"}


@pytest.mark.parametrize("prompt", ["kelp?", "/rag kelp?", " /RAG  kelp? "])
async def test_a_prompt_needs_no_command_with_the_header(http: httpx.AsyncClient, prompt: str) -> None:
    body = (await http.post("/v1/enrich", json={"prompt": prompt}, headers=ASKED)).json()
    assert body["metadata"]["rag_context"]["query"] == "kelp?"
    assert KELP in body["prompt"]
    assert body["prompt"].endswith("\n\nkelp?")


async def test_the_header_asks_for_a_chats_last_message(http: httpx.AsyncClient) -> None:
    chat = [{"role": "user", "content": "sand?"}, {"role": "user", "content": "kelp?"}]
    body = (await http.post("/v1/enrich", json={"messages": chat}, headers=ASKED)).json()
    assert [message["role"] for message in body["messages"]] == ["user", "system", "user"]
    assert body["metadata"]["rag_context"]["query"] == "kelp?"


@pytest.mark.parametrize("given", [{"messages": []}, {"messages": [{"role": "assistant", "content": "kelp?"}]}])
async def test_the_header_leaves_what_no_user_said_unchanged(http: httpx.AsyncClient, given: dict[str, Any]) -> None:
    assert (await http.post("/v1/enrich", json=given, headers=ASKED)).json() == given


async def test_the_header_never_wins_over_the_command(http: httpx.AsyncClient) -> None:
    given = {"prompt": "/rag kelp?"}
    assert (await http.post("/v1/enrich", json=given, headers={"X-RAG": "never"})).json() == given


@pytest.mark.parametrize(("prompt", "value"), [("kelp?", "sometimes"), (" ", "always"), (None, "always")])
async def test_a_header_that_cannot_be_followed_is_refused(
    http: httpx.AsyncClient, prompt: str | None, value: str
) -> None:
    answer = await http.post("/v1/enrich", json={"prompt": prompt}, headers={"X-RAG": value})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'"text"',
        b"null",
        b"7",
        b"NaN",
        b'{"prompt": "hi", "x": NaN}',
        b'{"prompt": "hi", "x": -Infinity}',
        b'{"prompt": "hi", "x": 1e999}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        json.dumps({}).encode(),
        json.dumps({"prompt": 7}).encode(),
        json.dumps({"prompt": "/rag"}).encode(),
        json.dumps({"prompt": "/rag " + "x" * 32_001}).encode(),
        json.dumps({"prompt": "/rag x", "id": []}).encode(),
        json.dumps({"messages": "x"}).encode(),
        json.dumps({"messages": [None]}).encode(),
        json.dumps({"messages": [{"role": "user", "content": {"a": 1}}]}).encode(),
        json.dumps({"prompt": "/rag x", "workspace": "../../etc"}).encode(),
    ],
)
async def test_bad_input_gets_the_envelope_and_never_a_500(http: httpx.AsyncClient, content: bytes) -> None:
    answer = await http.post("/v1/enrich", content=content, headers=AS_JSON)
    body = answer.json()
    assert answer.status_code == 400
    assert body["error"]["type"] == "validation_error"
    assert body["error"]["message"]
    assert body["error"]["retryable"] is False
    assert body["id"]
    assert body["timestamp"]


@pytest.mark.parametrize(
    "prompt", ["/rag \ud83d", "/rag kelp \x00\x01?", "/rag ' OR 1=1; -- \" * NEAR(", "/rag \u202e", "/rag 海藻"]
)
async def test_strange_questions_are_answered(http: httpx.AsyncClient, prompt: str) -> None:
    answer = await http.post("/v1/enrich", content=json.dumps({"prompt": prompt}).encode(), headers=AS_JSON)
    assert answer.status_code == 200


async def test_a_body_over_the_limit_is_refused() -> None:
    async with client(container(max_body_bytes=1024)) as http:
        answer = await http.post("/v1/enrich", json={"prompt": "x" * 2000})
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "payload_too_large"


async def test_an_error_names_the_request_it_belongs_to(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/enrich", json={"id": "r7", "prompt": "/rag"})
    assert answer.json()["id"] == "r7"


async def test_unknown_routes_and_methods_get_the_envelope(http: httpx.AsyncClient) -> None:
    missing = await http.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found")
    assert answer_of(await http.get("/v1/enrich"), 405)["error"]["message"]


async def test_an_outage_in_closed_mode_is_retryable() -> None:
    down = ServiceUnavailable("knowledge_base", "down")
    async with client(container(failure=down, fail_mode="closed")) as http:
        answer = await http.post("/v1/enrich", json={"prompt": "/rag kelp?"})
    assert answer.status_code == 503
    assert answer.json()["error"]["retryable"] is True


async def test_an_unexpected_error_is_reported_without_its_text() -> None:
    async with client(container(failure=RuntimeError("secret path /etc/shadow"))) as http:
        answer = await http.post("/v1/enrich", json={"prompt": "/rag kelp?"})
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "processing_error"
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic s3cret"}, 401),
        ({"Authorization": "Bearer s3cret"}, 200),
        ({"X-API-Key": "s3cret"}, 200),
        ({"X-API-Key": "ü"}, 401),
    ],
)
async def test_a_token_opens_the_routes_and_only_healthz_is_open(headers: dict[str, str], status: int) -> None:
    encoded = {name: value.encode() for name, value in headers.items()}
    async with client(container(api_token=SecretStr("s3cret"))) as http:
        enriched = await http.post("/v1/enrich", json={"prompt": "x"}, headers=encoded)
        assert enriched.status_code == status
        assert (await http.get("/health", headers=encoded)).status_code == status
        assert (await http.get("/healthz")).json() == {"ok": True}
    if status == 401:
        assert enriched.json()["error"]["type"] == "unauthorized"


async def test_every_route_but_healthz_and_ready_asks_for_the_token() -> None:
    built = container(api_token=SecretStr("s3cret"))
    routes = {
        (path, method) for path, methods in create_app(built).openapi()["paths"].items() for method in methods
    } | {("/openapi.json", "get")}
    assert {"/v1/enrich", "/healthz"} <= {path for path, _ in routes}
    async with client(built) as http:
        answers = {route: await http.request(route[1], route[0]) for route in routes}
    assert {path for (path, _), answer in answers.items() if answer.status_code != 401} == {"/healthz", "/ready"}


async def test_a_configuration_error_is_a_503_and_is_explained_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    wrong = ConfigurationError("Built with small, but RAG_EMBEDDING_MODEL names large. Unset it, or cragside reindex")
    async with client(container(failure=wrong)) as http:
        answer = await http.post("/v1/enrich", json={"prompt": "/rag kelp?", "id": "r1"})
    body = answer.json()
    assert (answer.status_code, body["id"]) == (503, "r1")
    assert (body["error"]["type"], body["error"]["details"]) == (
        "service_unavailable",
        {"component": "configuration"},
    )
    assert "small" not in answer.text
    assert wrong.message in caplog.text


async def test_the_openapi_document_describes_the_route(http: httpx.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    assert "requestBody" in document["paths"]["/v1/enrich"]["post"]


MANY = {f"k{number}": 0 for number in range(20_001)}
MANY_KEYS = {
    "keys": MANY,
    "keys beside a prompt": {"prompt": "/rag x", **MANY},
    "keys of items": {"items": [{"text": "x", f"k{number}": 0} for number in range(20_001)]},
    "a list": [MANY],
}


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("body", MANY_KEYS)
@pytest.mark.parametrize("path", ["/v1/enrich", "/v1/documents", "/v1/memories/search", "/ingest", "/query"])
async def test_a_body_of_too_many_keys_is_refused_before_they_are_looked_at(
    http: httpx.AsyncClient, path: str, body: str
) -> None:
    answer = await http.post(path, json=MANY_KEYS[body])
    assert answer.status_code == 400
    assert "more than 20000 keys" in answer.text
