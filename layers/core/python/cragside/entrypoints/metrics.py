"""Figures for Prometheus, which several processes of a server count together.

Each process counts in a file of its own in one folder. Whichever process is asked adds them up.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from cragside.application.attempts import Handled
from cragside.entrypoints.database_metrics import Shared
from cragside.entrypoints.metric_files import counting_as, sweep_figures
from cragside.ports.index_queue import QueueStats
from cragside.ports.telemetry import Standing

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"


class RequestCounts:
    """Counts the answered requests of this process. No label has a value that a client chooses.

    Raises `OSError` if the disk has no room for the counts.
    """

    def __init__(self) -> None:
        registry = counting_as(os.getpid, "counter", "histogram")
        self._requests = Counter(
            "cragside_requests", "Answered requests.", ("route", "method", "status"), registry=registry
        )
        self._seconds = Histogram(
            "cragside_request_seconds",
            "Seconds until the end of an answer.",
            ("route",),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._enrichments = Counter(
            "cragside_enrichments",
            "Prompts with the command, by where evidence came from.",
            ("verdict",),
            registry=registry,
        )
        # Looking a label up costs a lock and three hashes, which is much for each request that passes through.
        self._of_request = cache(self._requests.labels)
        self._of_route = cache(self._seconds.labels)

    def count(self, route: str | None, method: str, status: int, seconds: float, verdict: str | None) -> None:
        """Count a request. `route` is a template or a known path, None for all others. `verdict` is the evidence's."""
        route = route or _OTHER
        self._of_request(route, method if method in _METHODS else _OTHER, status).inc()
        self._of_route(route).observe(seconds)
        if verdict is not None:
            self._enrichments.labels(verdict).inc()


def worker() -> str:
    """The name of a server's workers, which run one after the other."""
    return "worker"


class TaskCounts:
    """Counts the indexing tasks of a worker. Workers of a server run one after the other and continue one count.

    Raises `OSError` if the disk has no room for the counts.
    """

    def __init__(self) -> None:
        self._tasks = Counter(
            "cragside_index_tasks",
            "Tried indexing tasks. A document has an embed task and an enrich task for each of its parts.",
            ("stage", "outcome"),
            registry=counting_as(worker, "counter"),
        )

    def count(self, handled: Handled) -> None:
        """Count a task."""
        self._tasks.labels(handled.task.stage, handled.outcome).inc()


def exposition(folder: str, queue: QueueStats | None, standing: Standing | None = None) -> bytes:
    """All counts in Prometheus' text format, with the queue's depth and what PostgreSQL holds if they are known."""
    registry = CollectorRegistry()
    if Path(folder).is_dir():  # somebody may have tidied the folder of temporary files
        sweep_figures(Path(folder))
        MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    if queue is not None:
        registry.register(_Depth({"pending": queue.pending, "processing": queue.processing, "dead": queue.dead}))
    if standing is not None:
        registry.register(Shared(standing))
    return generate_latest(registry)


class _Depth(Collector):
    def __init__(self, tasks: Mapping[str, int]) -> None:
        self._tasks = tasks

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("cragside_queue_tasks", "Indexing tasks in the queue.", labels=("state",))
        for state, count in self._tasks.items():
            family.add_metric((state,), count)
        yield family
