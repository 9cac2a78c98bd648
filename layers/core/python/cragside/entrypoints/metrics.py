"""Figures for Prometheus, which several processes of a server count together.

Each process counts in a file of its own in one folder. Whichever process is asked adds them up.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from cragside.application.attempts import Handled
from cragside.ports.index_queue import QueueStats

# The library reads the folder from this variable, and the worker gets it from the server.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"
_PREFIX = "cragside-metrics-"
# More than all routes, methods and statuses need.
_RESERVED_BYTES = 1 << 20
_log = logging.getLogger("cragside")


@contextmanager
def counting_folder() -> Iterator[str | None]:
    """A temporary folder for the counts of this process and of those that it starts; None if there is no room."""
    before = os.environ.get(FOLDER)
    with ExitStack() as stack:
        try:
            _sweep()
            prefix = f"{_PREFIX}{os.getpid()}-"
            folder = stack.enter_context(TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True))
        except OSError as error:
            _log.warning("Requests are not counted for /metrics: %s", error.strerror)
            yield None
            return
        os.environ[FOLDER] = folder
        try:
            yield folder
        finally:
            os.environ.pop(FOLDER) if before is None else os.environ.__setitem__(FOLDER, before)


class RequestCounts:
    """Counts the answered requests of this process. No label has a value that a client chooses.

    Raises `OSError` if the disk has no room for the counts.
    """

    def __init__(self) -> None:
        registry = _counting_as(os.getpid, "counter", "histogram")
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

    def count(self, route: str | None, method: str, status: int, seconds: float, verdict: str | None) -> None:
        """Count a request. `route` is a template or a known path, None for all others. `verdict` is the evidence's."""
        route = route or _OTHER
        self._requests.labels(route, method if method in _METHODS else _OTHER, status).inc()
        self._seconds.labels(route).observe(seconds)
        if verdict is not None:
            self._enrichments.labels(verdict).inc()


class TaskCounts:
    """Counts the indexing tasks of a worker. Workers of a server run one after the other and continue one count.

    Raises `OSError` if the disk has no room for the counts.
    """

    def __init__(self) -> None:
        self._tasks = Counter(
            "cragside_index_tasks",
            "Tried indexing tasks. A document has an embed task and an enrich task for each of its parts.",
            ("stage", "outcome"),
            registry=_counting_as(lambda: "worker", "counter"),
        )

    def count(self, handled: Handled) -> None:
        """Count a task."""
        self._tasks.labels(handled.task.stage, handled.outcome).inc()


def exposition(folder: str, queue: QueueStats | None) -> bytes:
    """All counts in Prometheus' text format, with the queue's depth if it is known."""
    registry = CollectorRegistry()
    if Path(folder).is_dir():  # somebody may have tidied the folder of temporary files
        MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    if queue is not None:
        registry.register(_Depth({"pending": queue.pending, "processing": queue.processing, "dead": queue.dead}))
    return generate_latest(registry)


class _Depth(Collector):
    def __init__(self, tasks: Mapping[str, int]) -> None:
        self._tasks = tasks

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily("cragside_queue_tasks", "Indexing tasks in the queue.", labels=("state",))
        for state, count in self._tasks.items():
            family.add_metric((state,), count)
        yield family


def _counting_as(process: Callable[[], object], *kinds: str) -> CollectorRegistry:
    """A registry for metrics of these kinds, whose files have the process's name."""
    for kind in kinds:
        _reserve(Path(os.environ[FOLDER]) / f"{kind}_{process()}.db")
    values.ValueClass = values.MultiProcessValue(process)  # type: ignore[no-untyped-call]
    return CollectorRegistry()


def _reserve(path: Path) -> None:
    """Take the space of a file before it is mapped into memory: a full disk would end a process that writes there."""
    if not path.exists():
        path.write_bytes(bytes(_RESERVED_BYTES))


def _sweep() -> None:
    """Remove the folders of servers that were killed."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        process = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdigit() and not _lives(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
