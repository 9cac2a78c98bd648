"""A durable queue of indexing tasks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cragside.domain.indexing import Task


@dataclass(frozen=True, slots=True)
class Delivery:
    """A task that was handed out. `attempt` counts from 1; `receipt` is the queue's own."""

    task: Task
    attempt: int
    receipt: Any


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that was given up, and why. `at` is ISO 8601 in UTC."""

    id: str
    task: Task
    reason: str
    attempts: int
    at: str


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many tasks wait, are being done, and were given up."""

    pending: int
    processing: int
    dead: int


class IndexQueue(ABC):
    """Hands each task to one worker at a time, as FIFO queues of SQS do.

    Several tasks of a group may come in one batch, in their order; while one of them is open, no other call gets tasks
    of that group. A delivery that is neither finished, given back nor buried comes again when its lease runs out or its
    worker is gone.
    Failures raise `ServiceUnavailable("queue", ...)`.
    """

    @abstractmethod
    async def send(self, tasks: Sequence[Task]) -> None:
        """Add tasks, durably. One whose equal waits already is not added twice."""

    @abstractmethod
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        """At most `limit` tasks, as soon as there are any, and none after `wait` seconds."""

    @abstractmethod
    async def extend(self, delivery: Delivery) -> None:
        """Renew the lease of a task that takes long."""

    @abstractmethod
    async def finish(self, delivery: Delivery) -> None:
        """The task is done."""

    @abstractmethod
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        """The task failed; it comes again after `delay` seconds, with its attempt counted."""

    @abstractmethod
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        """The task was not tried; it comes again after `delay` seconds, uncounted where the queue does the counting."""

    @abstractmethod
    async def bury(self, delivery: Delivery, reason: str) -> None:
        """The task is given up and becomes a dead letter."""

    @abstractmethod
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Dead letters, latest first."""

    @abstractmethod
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        """Put dead letters back into the queue, as new; how many there were."""

    @abstractmethod
    async def discard(self, *, workspace: str, document_id: str) -> None:
        """A document was deleted: forget its tasks and dead letters, where that does not disturb those of others.

        What stays does nothing when its turn comes.
        """

    @abstractmethod
    def leads(self) -> bool:
        """Whether this receiver may look for tasks that were never sent.

        Where only one process receives tasks, that process may, from its first `receive` on.
        """

    @abstractmethod
    async def stats(self) -> QueueStats:
        """How much there is, of all workspaces."""

    @abstractmethod
    async def stats_of(self, workspace: str) -> QueueStats | None:
        """How much there is of a workspace; None where the queue cannot count one workspace."""

    @abstractmethod
    async def close(self) -> None:
        """Release files and connections."""


class PushQueue(IndexQueue):
    """A queue whose service also calls a function with its messages."""

    @abstractmethod
    async def accept(self, body: str, receipt: str, attempt: int) -> Delivery | None:
        """The task of a message that the function was called with.

        None for a message that is no task; it becomes a dead letter.
        """
