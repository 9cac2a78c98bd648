"""A cached answer of the host."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock

T = TypeVar("T")

FINE_SECONDS = 30.0
SILENT_SECONDS = 5.0


class RememberedAnswer(Generic[T]):
    """Caches the answer of `fetch` for `fine` seconds, and its failure for `silent` seconds.

    Concurrent callers share one call of `fetch`; cancelling one does not affect the others. If `fetch` raises anything
    but `ServiceUnavailable`, the host's answer was invalid.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[T]],
        *,
        fine: float = FINE_SECONDS,
        silent: float = SILENT_SECONDS,
        clock: Clock = SYSTEM_CLOCK,
        component: str = "ollama",
    ) -> None:
        self._component = component
        self._fetch = fetch
        self._fine = fine
        self._silent = silent
        self._clock = clock
        self._answer: tuple[T] | None = None
        self._failure: ServiceUnavailable | None = None
        self._expires = 0.0
        self._under_way: asyncio.Task[None] | None = None

    async def get(self) -> T:
        """The answer. Raises `ServiceUnavailable` if the host does not answer, or did not a moment ago."""
        if self._clock.monotonic() >= self._expires:
            await asyncio.shield(self._asked())
        if self._failure is not None:
            # Each caller gets a new exception: a shared one would collect all tracebacks.
            raise ServiceUnavailable(self._failure.component, self._failure.message).at(self._failure.where)
        if self._answer is None:
            raise ServiceUnavailable(self._component, "the question to the host was given up")
        return self._answer[0]

    def forget(self) -> None:
        """Call `fetch` again at the next `get`."""
        self._expires = 0.0

    def failed(self, failure: ServiceUnavailable) -> None:
        """Cache a failure that another call met."""
        self._failure = failure
        self._expires = self._clock.monotonic() + self._silent

    def _asked(self) -> asyncio.Task[None]:
        task = self._under_way
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._under_way = asyncio.create_task(self._ask())
        return task

    async def _ask(self) -> None:
        try:
            self._answer = (await self._fetch(),)
        except ServiceUnavailable as failure:
            self.failed(failure)
        except Exception as error:
            self.failed(ServiceUnavailable(self._component, f"the host answered nonsense ({type(error).__name__})"))
        else:
            self._failure = None
            self._expires = self._clock.monotonic() + self._fine
