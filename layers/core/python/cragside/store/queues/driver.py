"""Interface of the queue to its database."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class Statements(Protocol):
    """Runs the statements of one transaction."""

    async def all(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a statement."""

    async def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        """Run a statement for each of the rows, in their order."""


class QueueDriver(ABC):
    """Runs the queue's statements, which are PostgreSQL's, and says who may receive.

    The first write makes a file with its tables. Those of PostgreSQL are made by `cragside migrate`. Failures are
    `ServiceUnavailable("queue", ...)`.
    """

    pauses: tuple[float, float]
    """Seconds until an empty queue is looked at again: at first, and at most."""

    @abstractmethod
    async def rows(self, sql: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows; none if there is no file."""

    @abstractmethod
    async def write(self, work: Callable[[Statements], Awaitable[Result]], **default: Result) -> Result:
        """Run `work` as one transaction. If there is no file, return `default`; without a `default`, make the file."""

    @abstractmethod
    async def chooses_alone(self, statements: Statements) -> bool:
        """Keep others from choosing tasks until the transaction ends. Return False if another one chooses now."""

    @abstractmethod
    async def may_receive(self) -> bool:
        """Return True if this process may take tasks. It may become the only one that does."""

    @abstractmethod
    def leads(self) -> bool:
        """Return True if this process may queue missing tasks."""

    @abstractmethod
    def is_gone(self, holder: str) -> bool:
        """Return True if another receiver is known to have ended. Only asked by one that may receive."""

    @abstractmethod
    async def close(self) -> None:
        """Release files, and let others receive."""
