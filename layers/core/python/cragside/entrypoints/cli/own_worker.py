"""The worker of a command that indexes in its own process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cragside.application.attempts import Handled
    from cragside.bootstrap import Container
    from cragside.ports.clock import Clock

# Says why work has stopped, "" while it goes on.
Trouble = Callable[[], str]

# What is needed is down when so many tries in a row, over so many seconds, have failed.
TRIES = 3
TRIED_SECONDS = 5.0


@asynccontextmanager
async def working(container: "Container | None") -> AsyncIterator[Trouble]:
    """While the block is open, queued tasks are processed: by a worker of this container, or by a service without one.

    Yields a function that says why work has stopped, "" while it goes on.
    """
    if container is None or not container.keeps_worker():
        yield lambda: ""  # with SQS, whoever empties the queue does the work
        return
    outage, worker = Outage(container.clock), container.worker()
    running = asyncio.create_task(worker.run(until_idle=True, sweep=False, progress=outage))

    def trouble() -> str:
        if running.done():
            running.result()  # raises what ended it
            return outage.reason or "the queue has nothing left to do"
        return outage.reason

    try:
        yield trouble
    finally:
        worker.stop()
        await asyncio.gather(running, return_exceptions=True)


class Outage:
    """Watches the outcome of tasks, and says when a component that all of them need is down."""

    def __init__(self, clock: "Clock") -> None:
        self._clock = clock
        self._began = 0.0
        self._tries = 0
        self._reason = ""

    def __call__(self, handled: "Handled") -> None:
        """Record the outcome of a task."""
        if not handled.unavailable:
            self._tries = 0
            return
        if not self._tries:
            self._began = self._clock.monotonic()
        self._tries += 1
        self._reason = handled.reason

    @property
    def reason(self) -> str:
        """What is down, or ""."""
        lasted = self._tries >= TRIES and self._clock.monotonic() - self._began >= TRIED_SECONDS
        return self._reason if lasted else ""
