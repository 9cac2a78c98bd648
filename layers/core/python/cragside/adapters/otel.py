"""Traces in OpenTelemetry's form, sent to a collector with OTLP over HTTP.

The SDK reads its own variables, which begin with OTEL_: where the collector is, headers, the sampler, a name.
"""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Thread

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cragside.domain.errors import CragsideError
from cragside.domain.outcome import RagContext, Step
from cragside.ports.clock import SYSTEM_CLOCK, Clock

# How long the end of a program or of an invocation waits for a collector.
_CLOSING_SECONDS = 1.0
# One that was late is not waited for again so soon.
_LATE_SECONDS = 60.0
# What steps tell, but for what quotes the question.
_ATTRIBUTES = frozenset({"passages", "grader", "asked", "next", "searched", "exchanges"})
_QUIET_SECONDS = 300.0
_REQUEST_ID = contexts.create_key("cragside.request_id")
_log = logging.getLogger("cragside")


class OtelTracer:
    """Has a span for each run, and below it one for each step. A thread sends them; what it cannot send is dropped.

    The thread is started by the first run, so that a process may fork before. Raises `ValueError` if a variable of the
    SDK has a value that it does not take.
    """

    def __init__(self, version: str, exporter: SpanExporter | None = None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        _keep_what_the_sdk_quotes_out_of_the_log()
        self._version = version
        self._clock = clock
        self._exporter = exporter or OTLPSpanExporter()
        self._waits_from = 0.0
        usual = Resource.create({SERVICE_NAME: "cragside", SERVICE_VERSION: version})
        resource = usual.merge(OTELResourceDetector().detect())  # a name in the environment goes before ours
        # Else the end of the program would wait for a collector that is away.
        self._made = TracerProvider(resource=resource, shutdown_on_exit=False)

    @cached_property
    def _provider(self) -> TracerProvider:
        try:
            self._made.add_span_processor(BatchSpanProcessor(self._exporter))
        except ValueError:
            _log.warning("There are no traces: a variable that begins with OTEL_BSP_ has a value that does not fit.")
        return self._made

    @contextmanager
    def run(self) -> Iterator["_Trace"]:
        """Open the span of a run, and mark it with the error that ends it."""
        tracer = self._provider.get_tracer("cragside", self._version)
        # The message of an exception may quote the request.
        with tracer.start_as_current_span(
            "cragside.enrich", record_exception=False, set_status_on_exception=False
        ) as span:
            if request_id := contexts.get_value(_REQUEST_ID):
                span.set_attribute("cragside.request_id", str(request_id))
            try:
                yield _Trace(tracer, span)
            except BaseException as error:
                kind = error.code if isinstance(error, CragsideError) else type(error).__name__
                span.set_attribute("error.type", kind)
                span.set_status(trace.StatusCode.ERROR)
                raise

    @contextmanager
    def called(self, request_id: str, traceparent: str) -> Iterator[None]:
        """Continue the caller's trace while the block runs."""
        context = TraceContextTextMapPropagator().extract({"traceparent": traceparent} if traceparent else {})
        token = contexts.attach(contexts.set_value(_REQUEST_ID, request_id, context))
        try:
            yield
        finally:
            contexts.detach(token)

    def flush(self) -> None:
        """Send the spans that wait. After a collector was late, the next ones go after a minute."""
        if "_provider" not in vars(self) or self._clock.time() < self._waits_from:
            return
        sending = Thread(target=self._provider.force_flush, daemon=True)
        sending.start()
        sending.join(_CLOSING_SECONDS)
        if sending.is_alive():
            self._waits_from = self._clock.time() + _LATE_SECONDS

    async def close(self) -> None:
        """Send what is left, if the collector takes it at once."""
        if "_provider" in vars(self):
            ending = Thread(target=self._provider.shutdown, daemon=True)
            ending.start()
            await asyncio.to_thread(ending.join, _CLOSING_SECONDS)


class _WithoutQuotes(logging.Handler):
    """Logs that the SDK complains, and where. It leaves out the message, which may quote secrets and addresses.

    It does so once in five minutes for each part of the SDK, which complains about a collector with each batch.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logged: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.created - self._logged.get(record.name, 0.0) < _QUIET_SECONDS:
            return
        self._logged[record.name] = record.created
        _log.log(
            record.levelno,
            "Traces are lost: %s has a problem. Check that the collector runs, and the variables that begin with OTEL_",
            record.name,
        )


def _keep_what_the_sdk_quotes_out_of_the_log() -> None:
    library = logging.getLogger("opentelemetry")
    library.propagate = False
    if not any(isinstance(handler, _WithoutQuotes) for handler in library.handlers):
        library.addHandler(_WithoutQuotes())


class _Trace:
    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span

    def step(self, step: Step) -> None:
        ended = time.time_ns()
        attributes = {
            f"cragside.{name}": value for name, value in step.facts.items() if name in _ATTRIBUTES and value is not None
        }
        if step.degraded:
            attributes["cragside.degraded"] = step.degraded
        span = self._tracer.start_span(
            step.name,
            trace.set_span_in_context(self._span),
            attributes=attributes,
            start_time=ended - round(step.ms * 1e6),
            record_exception=False,
        )
        span.end(ended)

    def found(self, context: RagContext) -> None:
        self._span.set_attributes(
            {
                "cragside.verdict": context.verdict,
                "cragside.mode": context.mode,
                "cragside.documents": len(context.documents),
                "cragside.search_performed": context.search_performed,
                "cragside.degraded": sorted({degradation.component for degradation in context.degraded}),
            }
        )
