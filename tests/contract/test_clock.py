"""The clock port: the machine's clock, and the one that tests move, keep the same contract."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from cragside.ports.clock import SYSTEM_CLOCK, Clock
from tests.clocks import MovedClock

LONG = 3600.0


@pytest.fixture(params=["system", "moved"])
async def clock(request: pytest.FixtureRequest) -> AsyncIterator[Clock]:
    if request.param == "system":
        yield SYSTEM_CLOCK
        return
    moved = MovedClock()

    async def move() -> None:
        while True:
            await asyncio.sleep(0.001)
            moved.move(0.001)

    moving = asyncio.create_task(move())
    yield moved
    moving.cancel()


async def test_a_sleep_takes_its_time_by_both_scales(clock: Clock) -> None:
    monotonic, time = clock.monotonic(), clock.time()
    await clock.sleep(0.02)
    assert clock.monotonic() - monotonic >= 0.0199
    assert clock.time() - time >= 0.0199


async def test_its_date_is_that_of_its_time_and_knows_its_zone(clock: Clock) -> None:
    assert abs(clock.now() - datetime.fromtimestamp(clock.time(), UTC)).total_seconds() < 60


async def test_an_event_ends_the_wait_for_it(clock: Clock) -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(clock.wait_for(event, LONG))
    await asyncio.sleep(0)
    event.set()
    async with asyncio.timeout(10):
        await waiting


async def test_the_wait_for_an_event_ends_by_itself(clock: Clock) -> None:
    event = asyncio.Event()
    async with asyncio.timeout(10):
        await clock.wait_for(event, 0.01)
    assert not event.is_set()


async def test_a_wait_can_be_cancelled(clock: Clock) -> None:
    waiting = asyncio.create_task(clock.wait_for(asyncio.Event(), LONG))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_wait_that_is_cancelled_as_its_event_happens_ends_the_task(clock: Clock, turns: int) -> None:
    event = asyncio.Event()

    async def twice() -> None:
        await clock.wait_for(event, LONG)
        await asyncio.Event().wait()

    waiting = asyncio.create_task(twice())
    await asyncio.sleep(0.005)
    event.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(10):
            await waiting
