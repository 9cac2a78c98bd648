"""Figures for Prometheus, which several processes of a server count together.

Each process counts in files of its own in one folder. Whichever process is asked adds them up.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from cragside.application.attempts import Handled
from cragside.domain.indexing import QueueStats
from cragside.ports.telemetry import Server, Standing, StatementKind

# The library reads the folder from this variable, and the worker gets it from the server.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_PREFIX = "cragside-metrics-"
# What is as it is now: a process that has ended has none of it.
_LIVE = "gauge_live"
# More than all routes, methods and statuses need.
_RESERVED_BYTES = 1 << 20
_log = logging.getLogger("cragside")

_STATEMENT_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"


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


def counting_as(process: Callable[[], object], *kinds: str) -> CollectorRegistry:
    """Return a registry for metrics of these kinds, whose files have the process's name.

    Raises `OSError` if the disk has no room for them.
    """
    folder = Path(os.environ[FOLDER])
    for kind in kinds:
        path = folder / f"{kind}_{process()}.db"
        # A live one is that of an earlier process of this name.
        if kind.startswith(_LIVE) or not path.exists():
            _reserve(path)
    values.ValueClass = _value_class(process, folder)
    return CollectorRegistry()


def sweep_figures(folder: Path) -> None:
    """Remove the current figures of processes that were killed, such as the connections that they had."""
    for process in {path.stem.rpartition("_")[2] for path in folder.glob(f"{_LIVE}*.db")}:
        if process.isdigit() and not _lives(int(process)):
            forget_figures(folder, process)


def forget_figures(folder: Path, process: object) -> None:
    """Remove the current figures of a process that has ended. Its counts stay."""
    for path in folder.glob(f"{_LIVE}*_{process}.db"):
        path.unlink(missing_ok=True)


@cache
def _value_class(process: Callable[[], object], folder: Path) -> Any:
    """Return the class of a process's values. There is one for each: two would overwrite each other in the files."""
    return values.MultiProcessValue(process)  # type: ignore[no-untyped-call]


def _reserve(path: Path) -> None:
    """Take the space of a file before it is mapped into memory: a full disk would end a process that writes there.

    Somebody may read the folder meanwhile, so the file is there whole or not at all.
    """
    new = path.with_suffix(".new")
    new.write_bytes(bytes(_RESERVED_BYTES))
    new.replace(path)


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
            buckets=_STATEMENT_BUCKETS,
            registry=registry,
        )
        self._lost = Counter(
            "cragside_leases_lost",
            "Writes that were refused because another process had taken their lease over.",
            registry=registry,
        )

    def connections(self, server: Server, *, most: int, in_use: int, waiting: int, opened: int | None = None) -> None:
        """Set how many connections of a server are allowed, open, in use and waited for."""
        counts = {"most": most, "in_use": in_use, "waiting": waiting, "open": opened}
        for state, count in counts.items():
            if count is not None:
                self._gauge(server, state).set(count)

    @cache  # noqa: B019 (there is one for each process)
    def _gauge(self, server: Server, state: str) -> Gauge:
        """Return the gauge of a state. To look it up takes longer than to set it."""
        return self._connections.labels(server, state)

    def statement(self, kind: StatementKind, seconds: float) -> None:
        """Add the seconds that a statement took."""
        self._statements.labels(kind).observe(seconds)

    def lease_lost(self) -> None:
        """Count a write that was refused because its lease was lost."""
        self._lost.inc()


def database_counts(process: Callable[[], object] = os.getpid) -> DatabaseCounts | None:
    """Return the counts of a process; None if the disk has no room for them, which other counts then report."""
    try:
        return DatabaseCounts(process)
    except OSError:
        return None


class _Known(Collector):
    """Collects figures that are known already, each by the value of one label."""

    def __init__(self) -> None:
        self._families: list[GaugeMetricFamily] = []

    def add(self, name: str, text: str, label: str, figures: Mapping[str, float]) -> None:
        family = GaugeMetricFamily(name, text, labels=(label,))
        for value, figure in figures.items():
            family.add_metric((value,), figure)
        self._families.append(family)

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families


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
    """Return the name under which all workers of a server count: they run one after the other."""
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
    known = _Known()
    if queue is not None:
        tasks = {"pending": queue.pending, "processing": queue.processing, "dead": queue.dead}
        known.add("cragside_queue_tasks", "Indexing tasks in the queue.", "state", tasks)
    if standing is not None:
        leases = {"held": standing.leases_held, "expired": standing.leases_expired}
        known.add("cragside_leases", "Leases of writers in PostgreSQL.", "state", leases)
        waiting = dict(sorted(standing.waiting.items()))
        counts = {role: count for role, (count, _) in waiting.items()}
        known.add("cragside_waiting_changes", "Changes that wait for another database.", "role", counts)
        ages = {role: seconds for role, (_, seconds) in waiting.items()}
        text = "How long the oldest of them has waited."
        known.add("cragside_oldest_waiting_change_seconds", text, "role", ages)
    registry.register(known)
    return generate_latest(registry)
