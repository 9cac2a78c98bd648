"""Counts and traces what the service does."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from cragside.domain.outcome import RagContext, Step

Server = Literal["postgres", "neo4j", "redis", "qdrant"]
StatementKind = Literal["read", "write", "transaction", "other"]


class DatabaseFigures(Protocol):
    """Counts what this process does with its databases. Each call takes microseconds and never fails."""

    def connections(self, server: Server, *, most: int, in_use: int, waiting: int, opened: int | None = None) -> None:
        """Take the numbers of connections: those allowed, in use, waited for, and open, if that is known."""

    def statement(self, kind: StatementKind, seconds: float) -> None:
        """Count a statement to PostgreSQL that has ended."""

    def lease_lost(self) -> None:
        """Count a write that was refused because another process had taken its lease over."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Counts of all processes that share PostgreSQL: leases that run, and leases that were left to expire.

    `waiting` has the changes that wait for another database by the roles of storages: their number, and the seconds
    that the oldest one has waited.
    """

    leases_held: int
    leases_expired: int
    waiting: Mapping[str, tuple[int, float]]


class Trace(Protocol):
    """Takes the steps of one run. It gets no question, no evidence and no secret."""

    def step(self, step: "Step") -> None:
        """Note a step that has just ended."""

    def found(self, context: "RagContext") -> None:
        """Note the outcome of the run."""


class Tracer(Protocol):
    """Traces runs. It never makes a run fail or wait."""

    def run(self) -> AbstractContextManager[Trace]:
        """Return the trace of a run, which lasts as long as this block."""

    def flush(self) -> None:
        """Have what has ended sent, for a process that is frozen afterwards. It waits a second at most."""

    def called(self, request_id: str, traceparent: str) -> AbstractContextManager[None]:
        """Runs in this block belong to the request, and to the trace of W3C's `traceparent` unless it is empty."""
