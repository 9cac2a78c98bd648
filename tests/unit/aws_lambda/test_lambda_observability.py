import io
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from lambda_stub import KELP, Context, container, event, health
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cragside.adapters import otel
from cragside.adapters.otel import OtelTracer
from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.aws_lambda import observability
from cragside.entrypoints.aws_lambda.function import Function
from cragside.entrypoints.aws_lambda.trace_header import traceparent_of
from tests.fakes import FakeSearch

Started = Callable[[Container], Function]


class Said:
    """Collect the log of a function and its metrics, which Powertools prints."""

    def __init__(self, log: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
        self._log = log
        self._capsys = capsys

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    def metrics(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]

    def everything(self) -> str:
        captured = self._capsys.readouterr()
        return self._log.getvalue() + captured.out + captured.err


@pytest.fixture
def said(log: io.StringIO, capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(log, capsys)


def test_an_answer_is_logged_with_the_gateways_request_id(function: Function, said: Said) -> None:
    observability.observed(function.answer)(event(), Context())
    logs = said.lines()
    assert logs[-1]["correlation_id"] == "JKJaXmPLvHcESHA="
    assert logs[-1]["function_request_id"] == Context.aws_request_id
    assert (logs[-1]["route"], logs[-1]["status"], logs[-1]["verdict"]) == ("/v1/enrich", 200, "local")


def test_an_answer_is_counted_with_its_verdict(function: Function, said: Said) -> None:
    observability.observed(function.answer)(event(), Context())
    metrics = said.metrics()
    counted = {name: value for line in metrics for name, value in line.items() if isinstance(value, list)}
    assert counted["Requests"] == counted["VerdictLocal"] == [1.0]
    assert counted["Failures"] == counted["Degraded"] == [0.0]
    assert counted["Latency"][0] > 0
    assert all(line["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "cragside" for line in metrics)


def test_a_degraded_answer_is_counted_and_names_the_component(started: Started, said: Said) -> None:
    function = started(container(failure=ServiceUnavailable("knowledge_base", "the disk is full")))
    observability.observed(function.answer)(event(), Context())
    logs, metrics = said.lines(), said.metrics()
    assert logs[-1]["degraded"] == ["knowledge_base", "search"]
    assert metrics[-1]["Degraded"] == metrics[-1]["VerdictNone"] == [1.0]


def test_a_health_check_has_no_verdict(function: Function, said: Said) -> None:
    observability.observed(function.answer)(health(), Context())
    logs, metrics = said.lines(), said.metrics()
    assert logs[-1]["route"] == "/healthz"
    assert "verdict" not in logs[-1]
    assert not [name for name in metrics[-1] if name.startswith("Verdict")]


def test_paths_that_are_no_route_are_not_repeated(function: Function, said: Said) -> None:
    asked = health()
    asked["requestContext"]["http"]["path"] = "/secret-that-a-client-typed"
    observability.observed(function.answer)(asked, Context())
    out = said.everything()
    assert '"route":"none","status":404' in out
    assert "secret-that-a-client-typed" not in out


@pytest.mark.parametrize("log_event", ["false", "true"])
def test_neither_prompt_nor_token_nor_evidence_is_logged(
    function: Function, said: Said, monkeypatch: pytest.MonkeyPatch, log_event: str
) -> None:
    monkeypatch.setenv("POWERTOOLS_LOGGER_LOG_EVENT", log_event)
    handler = observability.observed(function.answer)
    for asked in (event(), event(body='{"prompt": "how fast does kelp grow?"}'), event(body='{"prompt": "kelp')):
        handler(asked, Context())
    out = said.everything()
    for private in ("kelp", KELP, "right", "grow"):
        assert private not in out


def test_a_failure_is_logged_by_its_frames_without_its_message(
    started: Started, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = container()

    quoted = "what the prompt says of kelp"

    async def failing(*_: Any, **__: Any) -> Any:
        try:
            raise ValueError(quoted)
        except ValueError as error:
            raise RuntimeError(quoted) from error

    monkeypatch.setattr(built.enricher, "enrich", failing)
    answer = observability.observed(started(built).answer)(event(), Context())
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["error"]["type"] == "processing_error"
    out = said.everything()
    assert "in failing" in out
    assert "RuntimeError" in out
    assert "ValueError" in out
    assert "what the prompt says" not in out


def test_each_component_that_failed_is_counted(started: Started, said: Said) -> None:
    function = started(container(failure=ServiceUnavailable("knowledge_base", "the disk is full")))
    observability.observed(function.answer)(event(), Context())
    counted = said.metrics()[-1]
    assert counted["DegradedKnowledgeBase"] == [1.0]
    assert "DegradedSearch" not in counted, "SEARXNG_HOST is not set"


def test_a_search_that_nobody_configured_degrades_no_answer(started: Started, said: Said) -> None:
    observability.observed(started(container(threshold=0.95)).answer)(event(), Context())
    assert (said.lines()[-1]["degraded"], said.metrics()[-1]["Degraded"]) == (["search"], [0.0])
    down = FakeSearch(failure=ServiceUnavailable("search", "SearXNG does not answer."))
    searching = started(container({"search": down}, searxng_host="http://127.0.0.1:1", threshold=0.95))
    observability.observed(searching.answer)(event(), Context())
    counted = said.metrics()[-1]
    assert counted["Degraded"] == counted["DegradedSearch"] == [1.0]


def test_a_secret_that_cannot_be_read_is_counted(started: Started, said: Said) -> None:
    built = container()
    built.secrets.secret("a-secret", setting="X_SECRET", parse=str).unreadable = True
    observability.observed(started(built).answer)(health(), Context())
    assert said.metrics()[-1]["SecretUnreadable"] == [1.0]


def test_an_answer_has_the_gateways_request_id(function: Function) -> None:
    assert function.answer(event(), Context())["headers"]["x-request-id"] == "JKJaXmPLvHcESHA="
    foreign = event()
    foreign["requestContext"]["requestId"] = "two\nlines"
    refused = function.answer({**foreign, "body": "{"}, Context())
    assert refused["headers"]["x-request-id"].isalnum()
    assert json.loads(refused["body"])["id"] == refused["headers"]["x-request-id"]


def test_the_spans_of_an_invocation_are_sent_before_it_ends(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = InMemorySpanExporter()
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
    started(container({"tracer": OtelTracer("1", spans)})).answer(event(), Context())
    found = {span.name: span for span in spans.get_finished_spans()}
    assert found.keys() >= {"cragside.enrich", "retrieve", "grade", "decide", "inject"}
    root = found["cragside.enrich"]
    assert root.attributes is not None
    assert root.attributes["cragside.request_id"] == "JKJaXmPLvHcESHA="
    assert root.parent is not None
    assert f"{root.parent.trace_id:032x}/{root.parent.span_id:016x}" == (
        "5759e988bd862e3fe1be46a994272793/53995c3f42cd8ad8"
    )


def test_a_collector_that_hangs_is_waited_for_once(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    class Hanging(InMemorySpanExporter):
        def export(self, spans: Any) -> Any:
            released.wait(60)
            return super().export(spans)

    waits: list[float | None] = []
    join = threading.Thread.join
    monkeypatch.setattr(otel, "_CLOSING_SECONDS", 0.05)
    monkeypatch.setattr(
        threading.Thread, "join", lambda self, timeout=None: (waits.append(timeout), join(self, timeout))
    )
    try:
        function = started(container({"tracer": OtelTracer("1", Hanging())}))
        for _ in range(3):
            assert function.answer(event(), Context())["statusCode"] == 200
        assert waits.count(0.05) == 1
    finally:
        released.set()


@pytest.mark.parametrize(
    ("headers", "xray", "expected"),
    [
        ({}, "", ""),
        ({}, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0", ""),
        ({"Traceparent": f"00-{'a' * 32}-{'b' * 16}-00"}, "", f"00-{'a' * 32}-{'b' * 16}-00"),
        (
            {"traceparent": "no trace"},
            "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a:b",
            "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01",
        ),
    ],
)
def test_a_trace_continues_the_callers_else_lambdas(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], xray: str, expected: str
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", xray)
    assert traceparent_of(event(headers=headers)) == expected
