"""Tells the time for everything that depends on it, so that tests can move it."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime


class Clock:
    """Tells the time of this machine, and waits. Tests take a clock that they move (`tests/clocks.py`)."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""
        return time.monotonic()

    def time(self) -> float:
        """Return seconds since 1970, which go on while a machine sleeps, and may be set back."""
        return time.time()

    def now(self) -> datetime:
        """Return `time` as a date in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""
        await asyncio.sleep(seconds)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> None:
        """Wait for the event, at most so many seconds."""
        # On Python 3.11, `asyncio.wait_for` loses a cancellation that comes with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


SYSTEM_CLOCK = Clock()
