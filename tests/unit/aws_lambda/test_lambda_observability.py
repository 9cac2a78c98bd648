import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from lambda_stub import KELP, Context, container, event, health

from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.aws_lambda import observability
from cragside.entrypoints.aws_lambda.function import Function

Started = Callable[[Container], Function]


class Said:
    """What a function has said: its log, and its metrics, which Powertools prints."""

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


def test_unsampled_requests_are_not_traced(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []
    monkeypatch.setattr(observability, "_traced", lambda handler: traced.append("traced") or handler)
    handler = observability.observed(function.answer)
    for header in (None, "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0"):
        if header:
            monkeypatch.setenv("_X_AMZN_TRACE_ID", header)
        handler(health(), Context())
    assert traced == []
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
    handler(health(), Context())
    assert traced == ["traced"]


@pytest.mark.parametrize(
    ("variables", "loaded"),
    [
        ({}, []),
        ({"AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:2000"}, ["aws_xray_sdk.core"]),
        ({"AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:2000", "POWERTOOLS_TRACE_DISABLED": "true"}, []),
    ],
)
def test_the_tracer_is_loaded_ahead_where_it_may_be_needed(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], loaded: list[str]
) -> None:
    imported: list[str] = []
    monkeypatch.setattr(observability, "import_module", imported.append)
    for name in ("AWS_XRAY_DAEMON_ADDRESS", "POWERTOOLS_TRACE_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    observability.load_tracer()
    assert imported == loaded


def test_a_sampled_request_is_answered_through_the_tracer(function: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_TRACE_DISABLED", "true")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1")
    assert observability.observed(function.answer)(health(), Context())["statusCode"] == 200
