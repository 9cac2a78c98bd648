"""The clock port: time comes from one place, so that tests can move it."""

import asyncio
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import UTC, datetime

from typing_extensions import override


class Clock(ABC):
    """Tells the time, and waits."""

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""

    @abstractmethod
    def time(self) -> float:
        """Return seconds since 1970, which go on while a machine sleeps, and may be set back."""

    def now(self) -> datetime:
        """`time` as a date in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""

    @abstractmethod
    async def wait_for(self, event: asyncio.Event, seconds: float) -> None:
        """Wait for the event, at most so many seconds."""


class SystemClock(Clock):
    """The clock of this machine. It stands beside its port because it is the default of whatever takes a clock."""

    @override
    def monotonic(self) -> float:
        return time.monotonic()

    @override
    def time(self) -> float:
        return time.time()

    @override
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    @override
    async def wait_for(self, event: asyncio.Event, seconds: float) -> None:
        # On Python 3.11, `asyncio.wait_for` loses a cancellation that comes with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


SYSTEM_CLOCK = SystemClock()
