"""Keeps the connections of one process, and drops some where there are too many."""

from collections.abc import Callable
from itertools import islice
from typing import Protocol

from starlette.types import ASGIApp

from cragside.entrypoints.proxy.connection_limits import ConnectionLimits
from cragside.ports.clock import SYSTEM_CLOCK, Clock


class Connection(Protocol):
    """A client's connection."""

    @property
    def has_spoken(self) -> bool:
        """Tell if data has arrived that the server has not read yet and will read."""

    def drop(self) -> None:
        """End the connection at once."""

    def check(self, now: float) -> None:
        """End the connection if its client is too slow."""


class Clients:
    """The connections of one process."""

    def __init__(
        self,
        limits: ConnectionLimits,
        clock: Clock = SYSTEM_CLOCK,
        observe: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    ) -> None:
        self.limits = limits
        self.clock = clock
        # Wraps what answers requests that the application does not get.
        self.observe = observe
        # Connections without a request in process, the longest idle first.
        self._idle: dict[Connection, None] = {}
        self._busy: set[Connection] = set()
        # Refused connections, whose clients may still read the reason.
        self._refused: dict[Connection, None] = {}

    @property
    def full(self) -> bool:
        """Tell if there are too many requests. `/healthz` is answered nevertheless."""
        return len(self._busy) > self.limits.most - min(self.limits.spare, self.limits.most // 4)

    def idle(self, connection: Connection) -> None:
        """A client has connected, or all its requests have been answered. May drop idle connections."""
        self._busy.discard(connection)
        self._idle[connection] = None
        self._make_room()

    def refused(self, connection: Connection) -> None:
        """A client has been refused. Refused connections are the first to be dropped."""
        self.gone(connection)
        self._refused[connection] = None
        self._make_room()

    def _make_room(self) -> None:
        """Drop surplus connections, except those whose request has arrived and waits to be read.

        Many connections may arrive at once with their requests. Each of these gets an answer, even if it is a refusal.
        At most there are twice as many connections as allowed, for which there are enough descriptors.
        """
        excess = len(self._refused) + len(self._idle) + len(self._busy) - self.limits.most
        if excess <= 0:
            return
        there = [*self._refused, *self._idle]
        for connection in islice((each for each in there if not each.has_spoken), excess):
            connection.drop()
        if len(self._refused) + len(self._idle) + len(self._busy) > 2 * self.limits.most:
            there[0].drop()

    def busy(self, connection: Connection) -> None:
        """A client has sent the head of a request."""
        self._idle.pop(connection, None)
        self._busy.add(connection)

    def gone(self, connection: Connection) -> None:
        """A client has left."""
        self._idle.pop(connection, None)
        self._refused.pop(connection, None)
        self._busy.discard(connection)

    def check(self) -> None:
        """End the connections of clients that are too slow. Call it regularly."""
        now = self.clock.monotonic()
        for connection in [*self._refused, *self._idle, *self._busy]:
            connection.check(now)
