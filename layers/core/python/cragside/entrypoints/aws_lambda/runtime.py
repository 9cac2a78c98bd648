"""Serves both functions: the time of an invocation, its trace, snapshots, logs and metrics."""

import logging
import os
import random
import re
import sys
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import MetricUnit

from cragside.entrypoints.log import trace_of
from cragside.ports.clock import Clock

if TYPE_CHECKING:
    from cragside.domain.outcome import RagContext

# API Gateway gives up 29 s (REST) or 30 s (HTTP) after it received the request, a cold start included.
GATEWAY_SECONDS = 29.0
# For the work after the evidence: encoding, metrics, transport.
MARGIN_SECONDS = 0.5
# A request without time left is answered with what is there.
LEAST_SECONDS = 0.05

_W3C = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
# https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
_XRAY = re.compile(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24});Parent=([0-9a-f]{16});Sampled=1\b")
_TYPE = "AWS_LAMBDA_INITIALIZATION_TYPE"
SERVICE = "cragside"
Handler = Callable[[Any, Any], dict[str, Any]]
_ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Context(Protocol):
    """The part of Lambda's context that we need."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops the invocation."""


def seconds_left(event: Mapping[str, Any], context: Context, clock: Clock) -> float:
    """Return the seconds that a request may take, at least 0.05."""
    gateway = GATEWAY_SECONDS - _waited(event, clock.time())
    function = context.get_remaining_time_in_millis() / 1000
    return max(LEAST_SECONDS, min(gateway, function) - MARGIN_SECONDS)


def _waited(event: Mapping[str, Any], now: float) -> float:
    """Seconds since API Gateway received the request; 0 if that is unknown or the two clocks disagree."""
    request = event.get("requestContext")
    taken = (request.get("timeEpoch") or request.get("requestTimeEpoch")) if isinstance(request, Mapping) else None
    waited = now - taken / 1000 if isinstance(taken, int | float) else 0.0
    return waited if 0 <= waited < GATEWAY_SECONDS else 0.0


def traceparent_of(event: Any) -> str:
    """W3C's `traceparent` of an event, else X-Ray's of this invocation in its form if it is sampled, else ""."""
    headers = event.get("headers") if isinstance(event, Mapping) else None
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if str(name).lower() == "traceparent" and isinstance(value, str) and _W3C.fullmatch(value):
            return value
    found = _XRAY.search(os.environ.get("_X_AMZN_TRACE_ID", ""))
    return f"00-{found[1]}{found[2]}-{found[3]}-01" if found else ""


def ahead() -> bool:
    """Tell if INIT runs ahead of any request. Then it should load everything."""
    return os.environ.get(_TYPE) in ("snap-start", "provisioned-concurrency")


def on_snapshot(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Have the runtime call `before` its snapshot and `after` each restore, if it takes snapshots."""
    try:
        from snapshot_restore_py import register_after_restore, register_before_snapshot
    except ImportError:
        return
    register_before_snapshot(before)
    register_after_restore(after)


def reseed() -> None:
    """Give this copy of the snapshot its own random numbers. `uuid4` and `secrets` use the kernel's anyway."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


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
    route: str, status: int, milliseconds: float, context: "RagContext | None", *, expected: Collection[str] = ()
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
    """Count if a secret could not be read. Its earlier value may still be trusted."""
    metrics.add_metric("SecretUnreadable", MetricUnit.Count, int(unreadable))


def observe_given_up(count: int) -> None:
    """Count tasks that became dead letters."""
    metrics.add_metric("GivenUp", MetricUnit.Count, count)


def observed(handler: Handler) -> Handler:
    """Return a handler whose log lines have the request's id, and that sends metrics."""
    logged: Handler = logger.inject_lambda_context(
        metrics.log_metrics(handler, capture_cold_start_metric=True),
        log_event=False,
        correlation_id_path="requestContext.requestId",
        clear_state=True,
    )
    return logged
