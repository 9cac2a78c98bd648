import asyncio
import base64
import gzip
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from lambda_stub import KELP, Context, container, event, health

from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError
from cragside.entrypoints.aws_lambda import function as module
from cragside.entrypoints.aws_lambda.function import Function, start
from tests.clocks import MovedClock

Started = Callable[[Container], Function]


def body_of(answer: dict[str, Any]) -> Any:
    return json.loads(answer["body"])


@pytest.mark.parametrize("name", ["http_api", "http_api_payload_1", "rest_api", "function_url"])
def test_every_kind_of_http_event_is_enriched(function: Function, name: str) -> None:
    answer = function.answer(event(name), Context())
    assert answer["statusCode"] == 200
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["isBase64Encoded"] is False
    assert KELP in body_of(answer)["prompt"]
    assert body_of(answer)["metadata"]["rag_context"]["verdict"] == "local"


def test_a_body_in_base64_is_read(function: Function) -> None:
    plain = event()["body"].encode()
    answer = function.answer(event(body=base64.b64encode(plain).decode(), isBase64Encoded=True), Context())
    assert KELP in body_of(answer)["prompt"]


def test_a_plain_prompt_is_returned_unchanged(function: Function) -> None:
    answer = function.answer(event(body='{"prompt": "how fast does kelp grow?"}'), Context())
    assert body_of(answer) == {"prompt": "how fast does kelp grow?"}


def test_health_asks_for_no_token(function: Function) -> None:
    answer = function.answer(health(), Context())
    assert (answer["statusCode"], body_of(answer)) == (200, {"ok": True})


def test_the_console_needs_no_token_and_arrives_packed(function: Function) -> None:
    asked = health()
    asked["rawPath"] = asked["requestContext"]["http"]["path"] = "/console/"
    asked["headers"]["accept-encoding"] = "gzip"
    answer = function.answer(asked, Context())
    assert (answer["statusCode"], answer["headers"]["content-encoding"]) == (200, "gzip")
    assert answer["isBase64Encoded"] is True
    assert b"app.js" in gzip.decompress(base64.b64decode(answer["body"]))


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "wrong"}, {"authorization": "Bearer wrong"}])
def test_a_wrong_token_is_refused(function: Function, headers: dict[str, str]) -> None:
    answer = function.answer(event(headers={"host": "localhost", **headers}), Context())
    assert answer["statusCode"] == 401
    assert body_of(answer)["error"]["type"] == "unauthorized"


def test_a_body_over_the_limit_is_refused(started: Started) -> None:
    function = started(container(max_body_bytes=1024))
    answer = function.answer(event(body=json.dumps({"prompt": "/rag " + "x" * 1024})), Context())
    assert answer["statusCode"] == 413
    assert body_of(answer)["error"]["type"] == "payload_too_large"


def test_an_answer_that_lambda_could_not_return_is_refused(function: Function) -> None:
    # Each of these is two bytes in the request, and twelve in the answer.
    answer = function.answer(event(body=json.dumps({"prompt": "é" * 1_000_000}, ensure_ascii=False)), Context())
    assert answer["statusCode"] == 413
    assert "shorter" in body_of(answer)["error"]["message"]
    assert len(json.dumps(answer)) < module.MOST_ANSWER_BYTES


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "event",
        {},
        {"Records": [{"eventSource": "aws:sqs", "body": "{}"}]},
        {"Records": [{"cf": {"request": {"headers": {}, "uri": "/", "method": "GET"}}}]},
        {"source": "aws.events", "detail-type": "Scheduled Event"},
        {"requestContext": {}},
        {"version": "2.0", "requestContext": {}},
        event(headers=None),
        event(body="abc", isBase64Encoded=True),
        event(body="%%%", isBase64Encoded=True),
    ],
)
def test_an_event_that_is_no_request_is_answered_with_the_envelope(function: Function, broken: Any) -> None:
    answer = function.answer(broken, Context())
    assert answer["statusCode"] == 400
    assert body_of(answer)["error"]["type"] == "validation_error"


def test_one_loop_serves_every_event(function: Function) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @function._app.get("/loop")
    async def loop() -> None:
        loops.append(asyncio.get_running_loop())

    asked = health()
    asked["requestContext"]["http"]["path"] = "/loop"
    for _ in range(3):
        assert function.answer(asked, Context())["statusCode"] == 200
    assert len(set(map(id, loops))) == 1
    assert not loops[0].is_running()


def test_connections_stay_open_between_events(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    built = container()
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    function = started(built)
    monkeypatch.setattr(built, "close", close)
    for _ in range(2):
        function.answer(event(), Context())
    assert closed == []


def test_no_task_is_left_behind_by_an_answer(function: Function) -> None:
    loop = function._runner.get_loop()
    for asked in (event(), health(), event(body="{"), event(body='{"prompt": "plain"}')):
        function.answer(asked, Context())
        assert not asyncio.all_tasks(loop)


def test_the_time_left_reaches_the_use_case(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    built = container()
    granted: list[float | None] = []
    enrich = built.enricher.enrich

    async def noted(body: Any, *, timeout: float | None = None, **more: Any) -> Any:
        granted.append(timeout)
        return await enrich(body, timeout=timeout, **more)

    monkeypatch.setattr(built.enricher, "enrich", noted)
    function = started(built)
    function.answer(event(), Context(seconds=7))
    assert granted[0] is not None
    assert 0 < granted[0] <= 6.5


@pytest.mark.parametrize("waited", [3, 60])
def test_time_before_the_use_case_reduces_the_deadline(
    started: Started, monkeypatch: pytest.MonkeyPatch, waited: float
) -> None:
    granted: list[float] = []
    clock = MovedClock()

    def slow_token() -> tuple[str, ...]:
        clock.move(waited)
        return ("right",)

    async def noted(body: Any, *, timeout: float, **more: Any) -> Any:
        granted.append(timeout)
        return await enrich(body, timeout=timeout, **more)

    built = container({"secret": SimpleNamespace(value=slow_token), "clock": clock})
    enrich = built.enricher.enrich
    monkeypatch.setattr(built.enricher, "enrich", noted)
    assert started(built).answer(event(), Context(seconds=7))["statusCode"] == 200
    assert granted[0] <= 6.5 - waited


def test_a_function_that_anybody_could_ask_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAG_API_TOKEN", "RAG_API_TOKEN_SECRET", "RAG_ALLOW_ANONYMOUS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="RAG_API_TOKEN_SECRET"):
        start()


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("name", ["http_api", "http_api_payload_1", "rest_api", "function_url"])
def test_a_foreign_page_is_refused_behind_every_gateway(function: Function, name: str) -> None:
    asked = event(name)
    for headers in (asked["headers"], asked.get("multiValueHeaders") or {}):
        many = bool(headers) and isinstance(next(iter(headers.values())), list)
        headers["origin"] = ["https://evil.example"] if many else "https://evil.example"
    answer = function.answer(asked, Context())
    assert (answer["statusCode"], body_of(answer)["error"]["type"]) == (403, "forbidden")


def test_a_preflight_of_a_listed_page_needs_no_token(started: Started) -> None:
    asked = event(body=None)
    asked["requestContext"]["http"]["method"] = "OPTIONS"
    asked["headers"] = {"host": "a.example", "origin": "https://app.example", "access-control-request-method": "POST"}
    answer = started(container(allow_origins="https://app.example")).answer(asked, Context())
    assert (answer["statusCode"], answer["body"]) == (204, "")
    assert answer["headers"]["access-control-allow-origin"] == "https://app.example"
