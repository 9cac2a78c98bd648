"""Figures of the databases, for whoever watches a server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

Server = Literal["postgres", "neo4j", "redis", "qdrant"]
StatementKind = Literal["read", "write", "transaction", "other"]


class DatabaseFigures(Protocol):
    """Counts what this process does with its databases. Each call takes microseconds and never fails."""

    def connections(self, server: Server, *, most: int, in_use: int, waiting: int, opened: int | None = None) -> None:
        """So many connections may be used, are in use, are waited for, and are open, if that is known."""

    def statement(self, kind: StatementKind, seconds: float) -> None:
        """A statement to PostgreSQL has ended."""

    def lease_lost(self) -> None:
        """A write was refused because another process had taken its lease over."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What all processes that share PostgreSQL have there: leases that run and that were left to expire.

    `waiting` has the changes that wait for another database by the roles of storages: their number, and the seconds
    that the oldest one has waited.
    """

    leases_held: int
    leases_expired: int
    waiting: Mapping[str, tuple[int, float]]
