"""A durable queue of indexing tasks."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cragside.domain.indexing import Task


@dataclass(frozen=True, slots=True)
class Delivery:
    """A task that a worker has in hand. `attempt` counts from 1; `receipt` belongs to the queue."""

    task: Task
    attempt: int
    receipt: Any


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that was given up, and the reason. `at` is ISO 8601 in UTC."""

    id: str
    task: Task
    reason: str
    attempts: int
    at: str


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The numbers of waiting tasks, tasks in hand and dead letters."""

    pending: int
    processing: int
    dead: int


class IndexQueue(ABC):
    """Hands each task to one worker at a time.

    One call may get several tasks of a group, in order. While one of them is open, no other call gets tasks of that
    group. A delivery that is not settled comes again when its lease ends or its worker is gone. Failures raise
    `ServiceUnavailable("queue", ...)`.
    """

    @abstractmethod
    async def send(self, tasks: Sequence[Task]) -> None:
        """Add tasks durably, except those whose equals are waiting. A task replaces an equal dead letter."""

    @abstractmethod
    async def restore(self, tasks: Sequence[Task]) -> int:
        """Add the tasks that neither wait nor are in anybody's hands. Return their number."""

    @abstractmethod
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        """At most `limit` tasks, as soon as there are any; none after `wait` seconds."""

    @abstractmethod
    async def extend(self, delivery: Delivery) -> None:
        """Renew the lease of a task."""

    @abstractmethod
    async def finish(self, delivery: Delivery) -> None:
        """Settle a task that is done."""

    @abstractmethod
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        """Settle a task that failed. It comes again after `delay` seconds and counts one attempt more."""

    @abstractmethod
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        """Settle a task that was not tried. It comes again after `delay` seconds, uncounted."""

    @abstractmethod
    async def bury(self, delivery: Delivery, reason: str) -> None:
        """Settle a task that is given up. It becomes a dead letter."""

    @abstractmethod
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Dead letters, latest first."""

    @abstractmethod
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        """Queue dead letters again as new tasks. Return their number."""

    @abstractmethod
    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        """Forget the tasks and dead letters of a deleted document; without an id, of a workspace."""

    @abstractmethod
    def leads(self) -> bool:
        """Return True if this process may queue missing tasks: it is the only receiver, or there is no single one."""

    @abstractmethod
    async def stats(self) -> QueueStats:
        """The counts of all workspaces."""

    @abstractmethod
    async def stats_of(self, workspace: str) -> QueueStats:
        """The counts of a workspace."""

    @abstractmethod
    async def close(self) -> None:
        """Release files and connections."""


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
