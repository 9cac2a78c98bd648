"""Values that hold for a time: passwords and addresses that may be exchanged, and answers of hosts."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock

T = TypeVar("T")


class Unreadable(OSError):
    """An address or a password cannot be read. The message has the reason, and no secret."""


@runtime_checkable
class Renewable(Protocol[T]):
    """A value that may be exchanged while the process runs. Its text is for messages and has no secret."""

    async def current(self) -> T:
        """Return the value for new connections. It stays the same object until it is exchanged. Raises `Unreadable`."""
        ...

    async def after_refusal(self, refused: T) -> T | None:
        """Return the value now, if it is another one than the server has refused. Raises `Unreadable`."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed(Generic[T]):
    """A value that stays."""

    value: T

    async def current(self) -> T:
        """See `Renewable`."""
        return self.value

    async def after_refusal(self, _: T) -> T | None:
        """See `Renewable`."""
        return None

    def __str__(self) -> str:
        return str(self.value)


def renewable(value: "T | Renewable[T]") -> Renewable[T]:
    """Return the value as one that may be exchanged."""
    return value if isinstance(value, Renewable) else Fixed(value)


Answer = TypeVar("Answer")

FINE_SECONDS = 30.0
SILENT_SECONDS = 5.0


class RememberedAnswer(Generic[Answer]):
    """Caches the answer of `fetch` for `fine` seconds, and its failure for `silent` seconds.

    Concurrent callers share one call of `fetch`; cancelling one does not affect the others. If `fetch` raises anything
    but `ServiceUnavailable`, the host's answer was invalid.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Answer]],
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
        self._answer: tuple[Answer] | None = None
        self._failure: ServiceUnavailable | None = None
        self._expires = 0.0
        self._under_way: asyncio.Task[None] | None = None

    async def get(self) -> Answer:
        """Return the answer. Raises `ServiceUnavailable` if the host does not answer, or did not a moment ago."""
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
