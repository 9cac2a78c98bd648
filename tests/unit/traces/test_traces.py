"""A run of the graph as spans: on the wire, in its caller's trace, and without what the user asked."""

import asyncio
import io
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from cragside.adapters.otel import OtelTracer
from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.entrypoints.proxy.observed import Observer
from cragside.settings import Settings, load_settings
from tests.collector import Collector, told
from tests.fakes import FakeSearch
from tests.knowledge import Knowledge

PAGE = {"title": "A page", "url": "https://example.org/comets", "content": "A comet has a tail of dust and gas."}
QUESTION = "Which comet has a tail of dust and gas?"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
STEPS = ["retrieve", "grade", "decide", "rewrite", "search", "inject"]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as started:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", started.address)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield started


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Collect the log as a program with a handler at the root writes it. pytest's own handler gets more."""
    written = io.StringIO()
    logging.getLogger("opentelemetry").handlers.clear()  # what it told for another test, it would not tell again
    handler = logging.StreamHandler(written)
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


@asynccontextmanager
async def asked(home: Path, search: FakeSearch | None = None, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that traces."""
    knowledge = Knowledge(home, members={"search": search or FakeSearch(PAGE)}, traces=True, **settings)
    app = Observer(60.0, tracer=knowledge.container.tracer).wrap(knowledge.app)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    try:
        await knowledge.add("comets.md", "A comet was seen over Durham.")
        await knowledge.index()
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client
    finally:
        await knowledge.close()


def traced(home: Path, spans: InMemorySpanExporter, search: FakeSearch, **settings: Any) -> Container:
    """A container whose spans are kept."""
    made = Settings(home=home, **settings)  # type: ignore[call-arg]
    tracer = OtelTracer("1", spans)
    container = Container(made, tracer=tracer, search=search)
    container._closed(tracer, tracer.close)
    return container


async def test_each_step_is_a_span_in_the_trace_of_the_caller(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven")
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01", "X-Request-ID": "r-1"}
    async with asked(tmp_path) as client:
        before = time.time_ns()
        answer = await client.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"}, headers=headers)
        spans = collector.wait_for(lambda spans: any(span.name == "cragside.enrich" for span in spans))
    root = next(span for span in spans if span.name == "cragside.enrich")
    steps = [span for span in spans if span is not root]
    assert answer.json()["metadata"]["rag_context"]["verdict"] == "web"
    assert [step.name for step in sorted(steps, key=lambda step: step.end_time_unix_nano)] == STEPS
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    assert root.parent_span_id.hex() == CALLER
    assert {step.parent_span_id for step in steps} == {root.span_id}
    assert before <= root.start_time_unix_nano
    assert all(0 < step.start_time_unix_nano <= step.end_time_unix_nano for step in steps)
    assert told(root) == {
        "cragside.request_id": "r-1",
        "cragside.verdict": "web",
        "cragside.mode": "corrective",
        "cragside.documents": 1,
        "cragside.search_performed": True,
        "cragside.degraded": [],
    }
    assert {step.name: told(step) for step in steps} == {
        "retrieve": {"cragside.passages": 1},
        "grade": {"cragside.grader": "embedded", "cragside.asked": 0},
        "decide": {"cragside.next": "rewrite"},
        "rewrite": {},
        "search": {"cragside.searched": True, "cragside.passages": 1},
        "inject": {"cragside.passages": 1},
    }
    assert {(each["path"], each["x-tenant"]) for each in collector.headers} == {("/v1/traces", "seven")}
    [resource] = {request.resource_spans[0].resource.SerializeToString() for request in collector.requests()}
    assert b"cragside" in resource
    assert not any(word in body for body in collector.bodies for word in (b"comet", b"dust", b"Durham"))


@pytest.mark.parametrize("header", ["", "00-zz-11-01", f"00-{'0' * 32}-{CALLER}-01", "x" * 5000, "\xff"])
async def test_a_run_without_a_valid_caller_begins_a_trace(collector: Collector, tmp_path: Path, header: str) -> None:
    async with asked(tmp_path) as client:
        sent = {"traceparent": header.encode("latin-1")}
        answer = await client.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"}, headers=sent)  # type: ignore[arg-type]
        spans = collector.wait_for(lambda spans: any(span.name == "cragside.enrich" for span in spans))
    assert answer.status_code == 200
    assert [span.parent_span_id for span in spans if span.name == "cragside.enrich"] == [b""]


async def test_what_failed_is_told_by_its_component_alone(tmp_path: Path) -> None:
    spans, away = InMemorySpanExporter(), FakeSearch(failure=ServiceUnavailable("search", f"No page for {QUESTION}."))
    container = traced(tmp_path, spans, away)
    enriched = await container.enricher.enrich({"prompt": f"/rag {QUESTION}", "memory": True})
    await container.close()
    assert enriched.rag_context is not None
    found = {span.name: dict(span.attributes or {}) for span in spans.get_finished_spans()}
    assert found["search"]["cragside.degraded"] == ("search",)
    assert found["cragside.enrich"]["cragside.degraded"] == ("search",)
    assert found["recall"] == {"cragside.exchanges": 0}
    assert "comet" not in "".join(span.to_json() for span in spans.get_finished_spans())


async def test_a_run_that_fails_is_an_error_without_its_message(tmp_path: Path) -> None:
    spans, away = InMemorySpanExporter(), FakeSearch(failure=ServiceUnavailable("search", "away"))
    container = traced(tmp_path, spans, away, fail_mode="closed")
    container.workspaces.open = AsyncMock(side_effect=ServiceUnavailable("knowledge_base", "away"))  # type: ignore[method-assign]
    try:
        with pytest.raises(ServiceUnavailable):
            await container.enricher.enrich({"prompt": f"/rag {QUESTION}"})
    finally:
        await container.close()
    [root] = [span for span in spans.get_finished_spans() if span.name == "cragside.enrich"]
    assert root.status.status_code is StatusCode.ERROR
    assert (root.status.description, root.events) == (None, ())
    assert dict(root.attributes or {}) == {"error.type": "service_unavailable"}


async def test_a_prompt_without_the_command_has_no_span(tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    container = traced(tmp_path, spans, FakeSearch(PAGE))
    await container.enricher.enrich({"prompt": QUESTION})
    await container.enricher.enrich({"prompt": f"/rag {QUESTION}"})
    await container.close()
    assert [span.name for span in spans.get_finished_spans()] == [*STEPS, "cragside.enrich"]


@pytest.mark.parametrize("away", ["hangs", "refuses"])
async def test_a_collector_that_is_away_holds_up_no_request_and_no_end(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    if away == "hangs":
        collector.hold()
    else:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "120")
    async with asked(tmp_path) as client:
        answers = [await client.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"}) for _ in range(5)]
        if away == "hangs":
            collector.wait_for(lambda spans: bool(spans))
        began = time.monotonic()
    assert [answer.status_code for answer in answers] == [200] * 5
    assert time.monotonic() - began < 25  # the SDK would wait for 30 s


def test_a_tracer_starts_no_thread_before_its_first_run_as_servers_fork(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    Container(load_settings({"RAG_HOME": str(tmp_path), "RAG_TRACES": "true"})).build()
    assert set(threading.enumerate()) <= before


async def test_the_environment_may_name_the_service(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "library-of-durham")
    async with asked(tmp_path) as client:
        await client.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"})
        collector.wait_for(bool)
    assert b"library-of-durham" in collector.requests()[0].resource_spans[0].resource.SerializeToString()


def test_a_variable_of_the_sdk_that_does_not_fit_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "unlimited")
    container = Container(load_settings({"RAG_HOME": str(tmp_path), "RAG_TRACES": "true"}))
    with pytest.raises(ConfigurationError, match="a variable that begins with OTEL_"):
        _ = container.enricher


async def test_a_batch_that_does_not_fit_fails_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "256")  # less than a batch
    async with asked(tmp_path) as client:
        answers = [await client.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert "OTEL_BSP_" in caplog.text


@pytest.mark.attack("secrets in logs")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer geheim42"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20geheim42%0Ax"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9/geheim42"),
    ],
)
async def test_the_log_quotes_no_secret_of_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: io.StringIO, variable: str, value: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv(variable, value)
    async with asked(tmp_path) as client:
        await client.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"})
    async with asyncio.timeout(60):
        while "Traces are lost: opentelemetry." not in log.getvalue():
            await asyncio.sleep(0.05)
    assert "geheim42" not in log.getvalue()


@pytest.mark.attack("secrets in logs")
@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "geheim42 " * 900},
        {"traceparent": f"00-{TRACE}-{CALLER}-01-geheim42"},
        {"traceparent": "geheim42" * 900},
    ],
)
async def test_a_client_writes_nothing_into_the_log_with_its_trace(
    collector: Collector, tmp_path: Path, log: io.StringIO, headers: dict[str, str]
) -> None:
    async with asked(tmp_path) as client:
        assert (await client.get("/healthz", headers=headers)).status_code == 200
    assert "geheim42" not in log.getvalue()
    assert "opentelemetry.trace" not in log.getvalue()


def test_without_the_setting_nothing_of_traces_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cragside.adapters.otel", None)  # whoever imports it fails
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}))
    container.build()
    assert container.tracer is None


def test_a_missing_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cragside.adapters.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    container = Container(load_settings({"RAG_HOME": str(tmp_path), "RAG_TRACES": "true"}))
    with pytest.raises(ConfigurationError, match=r"RAG_TRACES is set, but .* Install the extra `otel`"):
        _ = container.enricher
