"""Structured logs, metrics and traces of a function. Never a prompt, a token or evidence."""

import functools
import logging
import os
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import MetricUnit

from cragside.domain.outcome import RagContext
from cragside.entrypoints.failure_traces import trace_of

SERVICE = "cragside"

Handler = Callable[[Any, Any], dict[str, Any]]
_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class MessagelessFormatter(LambdaPowertoolsFormatter):
    """Formats exceptions without their messages, which may quote the request."""

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 (logging's name)
        """The tracebacks and types of an exception and its causes."""
        return trace_of(ei[1])


# The logger has the package's name, so that all modules log in the same form.
logger = Logger(service=SERVICE, logger_formatter=MessagelessFormatter(serialize_stacktrace=False))
metrics = Metrics(namespace=SERVICE, service=SERVICE)
# Mangum would log a failure again, with its message.
logging.getLogger("mangum.http").disabled = True


def observe(route: str, status: int, milliseconds: float, context: RagContext | None) -> None:
    """Log one line and one set of metrics for an answer. `route` is a template, not the client's path."""
    said: dict[str, Any] = {"route": route, "status": status, "latency_ms": round(milliseconds, 1)}
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    metrics.add_metric("Latency", MetricUnit.Milliseconds, milliseconds)
    metrics.add_metric("Failures", MetricUnit.Count, int(status >= 500))
    if context:
        degraded = sorted({degradation.component for degradation in context.degraded})
        said |= {"verdict": context.verdict, "documents": len(context.documents), "degraded": degraded}
        said["reasons"] = [f"{degradation.component}: {degradation.reason}" for degradation in context.degraded]
        metrics.add_metric(f"Verdict{context.verdict.capitalize()}", MetricUnit.Count, 1)
        metrics.add_metric("Degraded", MetricUnit.Count, int(bool(degraded)))
    logger.info("answered", extra=said)


def observed(handler: Handler) -> Handler:
    """A handler whose log lines have the request's id. Sends metrics, and a trace if X-Ray samples the request."""
    logged = logger.inject_lambda_context(
        metrics.log_metrics(handler, capture_cold_start_metric=True),
        log_event=False,
        correlation_id_path="requestContext.requestId",
        clear_state=True,
    )

    @functools.wraps(handler)
    def handle(event: Any, context: Any) -> dict[str, Any]:
        return (_traced(logged) if _sampled() else logged)(event, context)

    return handle


def load_tracer() -> None:
    """Import what a traced invocation needs, if this is Lambda and tracing is on."""
    off = os.environ.get("POWERTOOLS_TRACE_DISABLED", "").lower() in ("1", "true", "yes", "on")
    if "AWS_XRAY_DAEMON_ADDRESS" in os.environ and not off:
        import_module("aws_xray_sdk.core")


def _sampled() -> bool:
    """Whether this invocation is traced, by Lambda's trace header."""
    return "Sampled=1" in os.environ.get("_X_AMZN_TRACE_ID", "")


@functools.cache
def _traced(handler: Handler) -> Handler:
    # The X-Ray SDK imports botocore, which takes most of a second. Only sampled requests wait for it.
    from aws_lambda_powertools import Tracer

    tracer = Tracer(service=SERVICE, auto_patch=False)
    traced: Handler = tracer.capture_lambda_handler(handler, capture_response=False, capture_error=False)
    return traced
