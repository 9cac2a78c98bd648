"""The files in which the processes of a server count, each in its own, in one folder."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from prometheus_client import CollectorRegistry, values

# The library reads the folder from this variable, and the worker gets it from the server.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_PREFIX = "cragside-metrics-"
# What is as it is now: a process that has ended has none of it.
_LIVE = "gauge_live"
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


def counting_as(process: Callable[[], object], *kinds: str) -> CollectorRegistry:
    """A registry for metrics of these kinds, whose files have the process's name.

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
    """Remove what processes of a server had when they were killed."""
    for process in {path.stem.rpartition("_")[2] for path in folder.glob(f"{_LIVE}*.db")}:
        if process.isdigit() and not _lives(int(process)):
            forget_figures(folder, process)


def forget_figures(folder: Path, process: object) -> None:
    """Remove what a process had that has ended; what it counted stays."""
    for path in folder.glob(f"{_LIVE}*_{process}.db"):
        path.unlink(missing_ok=True)


@cache
def _value_class(process: Callable[[], object], folder: Path) -> Any:
    """Two of them would write over each other in the files of one process."""
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
