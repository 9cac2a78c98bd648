import asyncio
import logging

import pytest

from cragside.databases.gate import close_quietly


async def failing():
    raise ConnectionResetError("hush")


@pytest.mark.parametrize(
    ("closing", "told"), [(asyncio.Event().wait, "TimeoutError"), (failing, "ConnectionResetError")]
)
async def test_a_connection_that_does_not_end_fails_nothing_and_is_told_in_the_log(closing, told, caplog):
    with caplog.at_level(logging.INFO, "cragside"):
        await close_quietly("Redis", closing(), seconds=0.01)
    assert [record.getMessage() for record in caplog.records] == [
        f"Connections to Redis did not end when they were closed ({told})."
    ]


async def test_a_connection_that_ends_is_not_told(caplog):
    with caplog.at_level(logging.INFO, "cragside"):
        await close_quietly("Redis", asyncio.sleep(0))
    assert caplog.records == []


async def test_whoever_is_stopped_meanwhile_is_stopped():
    closing = asyncio.create_task(close_quietly("Redis", asyncio.Event().wait()))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
