"""Messages that call a function when indexing tasks wait."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from cragside.domain.indexing import Task


class TaskMessages(ABC):
    """Messages that call a function when tasks wait. They hold no task: each says "look".

    A lost message delays tasks until the next one, and a doubled one does no harm. Failures raise
    `ServiceUnavailable("queue", ...)`.
    """

    @abstractmethod
    async def send(self, groups: Collection[str]) -> None:
        """Send a message for each group. One function at a time gets the messages of a group."""

    @abstractmethod
    async def take(self, adopt: Callable[[Sequence[Task]], Awaitable[None]]) -> None:
        """Take some messages away, after their tasks were adopted: those of earlier versions held one each."""

    @abstractmethod
    def tasks_in(self, bodies: Iterable[str]) -> list[Task]:
        """Return the tasks in messages of earlier versions."""

    @abstractmethod
    async def hide(self, receipt: str, *, seconds: float) -> None:
        """Have a message that is reported as failed come again after so many seconds."""
