"""Structured logs and metrics of a function. Never a prompt, a token or evidence."""

import logging
import os
from collections.abc import Callable, Collection
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
if _NAME := os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
    # Environments of one account have functions with different names.
    metrics.set_default_dimensions(function_name=_NAME)
# Mangum would log a failure again, with its message.
logging.getLogger("mangum.http").disabled = True


def observe(
    route: str, status: int, milliseconds: float, context: RagContext | None, *, expected: Collection[str] = ()
) -> None:
    """Log one line and one set of metrics for an answer. `route` is a template, not the client's path.

    Components that are `expected` to be missing make no answer a degraded one.
    """
    fields: dict[str, Any] = {"route": route, "status": status, "latency_ms": round(milliseconds, 1)}
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    metrics.add_metric("Latency", MetricUnit.Milliseconds, milliseconds)
    metrics.add_metric("Failures", MetricUnit.Count, int(status >= 500))
    if context:
        degraded = sorted({degradation.component for degradation in context.degraded})
        fields |= {"verdict": context.verdict, "documents": len(context.documents), "degraded": degraded}
        fields["reasons"] = [f"{degradation.component}: {degradation.reason}" for degradation in context.degraded]
        failed = [component for component in degraded if component not in expected]
        metrics.add_metric(f"Verdict{context.verdict.capitalize()}", MetricUnit.Count, 1)
        metrics.add_metric("Degraded", MetricUnit.Count, int(bool(failed)))
        for component in failed:
            metrics.add_metric(f"Degraded{component.title().replace('_', '')}", MetricUnit.Count, 1)
    logger.info("answered", extra=fields)


def observe_secrets(*, unreadable: bool) -> None:
    """Count whether a secret could not be read. What was read before may still be trusted."""
    metrics.add_metric("SecretUnreadable", MetricUnit.Count, int(unreadable))


def observed(handler: Handler) -> Handler:
    """A handler whose log lines have the request's id, and that sends metrics."""
    logged: Handler = logger.inject_lambda_context(
        metrics.log_metrics(handler, capture_cold_start_metric=True),
        log_event=False,
        correlation_id_path="requestContext.requestId",
        clear_state=True,
    )
    return logged
