"""How long an answer may take: what Lambda has left, and what API Gateway will wait."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

# API Gateway gives up after 29 s (REST) or 30 s (HTTP), counted from when it took the request, a cold start included.
GATEWAY_SECONDS = 29.0
# For what comes after the evidence: the answer's encoding, the metrics, the way back.
MARGIN_SECONDS = 0.5
# A request whose time is up is answered with what is at hand.
LEAST_SECONDS = 0.05


class Context(Protocol):
    """What is needed of Lambda's context."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops the invocation."""
        ...


def seconds_left(event: Mapping[str, Any], context: Context, clock: Callable[[], float] = time.time) -> float:
    """The seconds that a request may take, 0.05 at least."""
    gateway = GATEWAY_SECONDS - _waited(event, clock())
    function = context.get_remaining_time_in_millis() / 1000
    return max(LEAST_SECONDS, min(gateway, function) - MARGIN_SECONDS)


def _waited(event: Mapping[str, Any], now: float) -> float:
    """Seconds since API Gateway took the request; 0 where it does not say so, or where the two clocks disagree."""
    request = event.get("requestContext")
    taken = (request.get("timeEpoch") or request.get("requestTimeEpoch")) if isinstance(request, Mapping) else None
    waited = now - taken / 1000 if isinstance(taken, int | float) else 0.0
    return waited if 0 <= waited < GATEWAY_SECONDS else 0.0
