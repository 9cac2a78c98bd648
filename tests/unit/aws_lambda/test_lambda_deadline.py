from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lambda_stub import Context, event

from cragside.entrypoints.aws_lambda.runtime import GATEWAY_SECONDS, LEAST_SECONDS, MARGIN_SECONDS, seconds_left
from tests.clocks import MovedClock

TAKEN = datetime.fromtimestamp(1773144000, UTC)


def left(seconds: float, *, later: float = 0.0, asked: dict[str, Any] | None = None) -> float:
    return seconds_left(
        event() if asked is None else asked, Context(seconds), MovedClock(TAKEN + timedelta(seconds=later))
    )


def test_the_deadline_is_the_remaining_time_less_a_margin() -> None:
    assert left(10) == 10 - MARGIN_SECONDS


@pytest.mark.parametrize("seconds", [29, 60, 900])
def test_the_deadline_is_below_the_timeout_of_api_gateway(seconds: float) -> None:
    assert left(seconds) == GATEWAY_SECONDS - MARGIN_SECONDS < 29


def test_a_cold_start_reduces_the_deadline() -> None:
    assert left(60, later=4) == pytest.approx(25 - MARGIN_SECONDS)


def test_a_cold_start_reduces_the_deadline_for_the_older_payload() -> None:
    assert left(60, later=4, asked=event("rest_api")) == pytest.approx(25 - MARGIN_SECONDS)


@pytest.mark.parametrize("later", [-5, 29, 86_400])
def test_a_clock_that_cannot_be_right_is_not_believed(later: float) -> None:
    assert left(60, later=later) == GATEWAY_SECONDS - MARGIN_SECONDS


@pytest.mark.parametrize("context", [None, {}, {"timeEpoch": "yesterday"}, []])
def test_an_event_without_a_time_is_taken_to_be_fresh(context: Any) -> None:
    assert left(60, asked={"requestContext": context}) == GATEWAY_SECONDS - MARGIN_SECONDS


@pytest.mark.parametrize("seconds", [0, 0.4, -3])
def test_the_deadline_is_always_positive(seconds: float) -> None:
    assert left(seconds) == LEAST_SECONDS
