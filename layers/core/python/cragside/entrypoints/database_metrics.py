"""Figures of the databases for Prometheus."""

import os
from collections.abc import Callable, Iterator

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cragside.entrypoints.metric_files import counting_as
from cragside.ports.telemetry import Server, Standing, StatementKind

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class DatabaseCounts:
    """Counts what a process does with its databases, under the name that `process` gives.

    Raises `OSError` if the disk has no room for the counts.
    """

    def __init__(self, process: Callable[[], object] = os.getpid) -> None:
        registry = counting_as(process, "counter", "histogram", "gauge_livesum")
        self._connections = Gauge(
            "cragside_database_connections",
            "Connections to databases.",
            ("server", "state"),
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._statements = Histogram(
            "cragside_postgres_statement_seconds",
            "Seconds of a statement to PostgreSQL.",
            ("kind",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._lost = Counter(
            "cragside_leases_lost",
            "Writes that were refused because another process had taken their lease over.",
            registry=registry,
        )

    def connections(self, server: Server, *, most: int, in_use: int, waiting: int, opened: int | None = None) -> None:
        """See the port."""
        counts = {"most": most, "in_use": in_use, "waiting": waiting, "open": opened}
        for state, count in counts.items():
            if count is not None:
                self._connections.labels(server, state).set(count)

    def statement(self, kind: StatementKind, seconds: float) -> None:
        """See the port."""
        self._statements.labels(kind).observe(seconds)

    def lease_lost(self) -> None:
        """See the port."""
        self._lost.inc()


def database_counts(process: Callable[[], object] = os.getpid) -> DatabaseCounts | None:
    """Counts of a process, None if the disk has no room for them; then requests and tasks tell."""
    try:
        return DatabaseCounts(process)
    except OSError:
        return None


class Shared(Collector):
    """What all processes that share PostgreSQL have there."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The leases, and the changes that wait for another database."""
        standing = self._standing
        leases = GaugeMetricFamily("cragside_leases", "Leases of writers in PostgreSQL.", labels=("state",))
        leases.add_metric(("held",), standing.leases_held)
        leases.add_metric(("expired",), standing.leases_expired)
        changes = GaugeMetricFamily(
            "cragside_waiting_changes", "Changes that wait for another database.", labels=("role",)
        )
        ages = GaugeMetricFamily(
            "cragside_oldest_waiting_change_seconds", "How long the oldest of them has waited.", labels=("role",)
        )
        for role, (count, seconds) in sorted(standing.waiting.items()):
            changes.add_metric((role,), count)
            ages.add_metric((role,), seconds)
        yield from (leases, changes, ages)
