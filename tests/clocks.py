"""A clock that tests move."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

from typing_extensions import override

from cragside.ports.clock import Clock

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)

Result = TypeVar("Result")
_COUNTING = threading.Lock()


class MovedClock(Clock):
    """Stands still until it is moved, which wakes those whose time has come."""

    def __init__(self, begin: datetime = BEGIN) -> None:
        self._time = self._begin = begin.timestamp()
        # It begins elsewhere than the time of day, so that a test fails where the two are mixed.
        self._monotonic = 1000.0
        self._sleeping: list[tuple[float, asyncio.Future[None]]] = []
        self.slept: list[float] = []

    @override
    def monotonic(self) -> float:
        return self._monotonic

    @override
    def time(self) -> float:
        return self._time

    @override
    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        each = self._monotonic + seconds, asyncio.get_running_loop().create_future()
        self._sleeping.append(each)
        try:
            await each[1]
        finally:
            self._sleeping.remove(each)

    @override
    async def wait_for(self, event: asyncio.Event, seconds: float) -> None:
        ways = [asyncio.create_task(event.wait()), asyncio.create_task(self.sleep(seconds))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()

    def move(self, seconds: float) -> None:
        """Let so many seconds pass. A negative number sets the time of day back."""
        self._time += seconds
        self._monotonic += max(0.0, seconds)
        for due, future in self._sleeping:
            if due <= self._monotonic and not future.done():
                future.get_loop().call_soon_threadsafe(_wake, future)

    def move_to(self, seconds: float) -> None:
        """Make it so many seconds after the beginning, which may be earlier than now."""
        self.move(self._begin + seconds - self._time)

    async def run(self, work: Awaitable[Result]) -> Result:
        """Run to the end, and move on to the next wake-up whenever all sleep and no thread works."""
        threads = _Threads()
        asyncio.get_running_loop().set_default_executor(threads)
        task, begun = asyncio.ensure_future(work), -1
        while not task.done():
            await asyncio.wait([task], timeout=0.001)
            if not threads.busy and threads.begun == begun:
                self.move_on()
            # Who waited for a thread gets on before time does.
            begun = -1 if threads.busy else threads.begun
        return await task

    async def run_until(self, happened: Callable[[], object], *, within: float) -> None:
        """Let time pass slowly until something has happened, which fails after so many seconds."""
        ends = self._monotonic + within
        while not happened():
            assert self._monotonic < ends, f"It has not happened within {within} s"
            await asyncio.sleep(0.005)  # others, and threads, get on meanwhile
            self.move(0.02)

    def move_on(self) -> None:
        """Let time pass until the first sleeper wakes up."""
        if dues := [due for due, future in self._sleeping if not future.done()]:
            self.move(max(0.0, min(dues) - self._monotonic))


class _Threads(ThreadPoolExecutor):
    """Counts what was begun in threads, and what is under way."""

    begun = busy = 0

    def submit(self, *work: Any, **given: Any) -> Any:
        """Begin work in a thread."""
        with _COUNTING:
            self.begun += 1
            self.busy += 1
        future = super().submit(*work, **given)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: object) -> None:
        with _COUNTING:
            self.busy -= 1


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
