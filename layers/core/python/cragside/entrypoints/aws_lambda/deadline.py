"""The time for an answer: the lesser of what Lambda and API Gateway leave."""

from collections.abc import Mapping
from typing import Any, Protocol

from cragside.ports.clock import Clock

# API Gateway gives up 29 s (REST) or 30 s (HTTP) after it received the request, a cold start included.
GATEWAY_SECONDS = 29.0
# For the work after the evidence: encoding, metrics, transport.
MARGIN_SECONDS = 0.5
# A request without time left is answered with what is there.
LEAST_SECONDS = 0.05


class Context(Protocol):
    """The part of Lambda's context that we need."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda stops the invocation."""


def seconds_left(event: Mapping[str, Any], context: Context, clock: Clock) -> float:
    """The seconds that a request may take, at least 0.05."""
    gateway = GATEWAY_SECONDS - _waited(event, clock.time())
    function = context.get_remaining_time_in_millis() / 1000
    return max(LEAST_SECONDS, min(gateway, function) - MARGIN_SECONDS)


def _waited(event: Mapping[str, Any], now: float) -> float:
    """Seconds since API Gateway received the request; 0 if that is unknown or the two clocks disagree."""
    request = event.get("requestContext")
    taken = (request.get("timeEpoch") or request.get("requestTimeEpoch")) if isinstance(request, Mapping) else None
    waited = now - taken / 1000 if isinstance(taken, int | float) else 0.0
    return waited if 0 <= waited < GATEWAY_SECONDS else 0.0
