"""Settings and fixtures for every test."""

import asyncio
import gc
import os
import sys
import time
from collections.abc import Coroutine, Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

pytest_plugins = ("tests.services.fixtures",)

# What takes longest to compile of all that the tests import.
_LARGE = (
    "cragside.crag.graph", "pandas", "schemathesis", "qdrant_client", "hypothesis", "redis", "fastapi.openapi.models",
    "cragside.store.lightrag", "moto", "neo4j", "openpyxl", "aiohttp", "PIL.Image", "rich.progress",
)  # fmt: skip

_STAGES = {
    "test-containers": {"containers"},
    "test-cloud": {"e2e", "layers"},
    "test-services": {"services", "real_ollama", "real_searxng", "hosts"},
    "test-browser": {"browser"},
    "test-packages": {"clients", "install", "guides"},
}

# A test that sleeps for longer at a time says why: `@pytest.mark.waits("reason")`.
_LONGEST_SLEEP_SECONDS = 0.2
_OURS = f"{Path(__file__).parent}{os.sep}"

# While modules are imported and items made, Python's threshold of 700 new objects searches for garbage all the time.
gc.set_threshold(20_000, 20, 20)

# Tests assert no timings: an example may take its time on a busy machine. CI tries the same examples for the same code;
# a run at a desk tries new ones each time.
settings.register_profile("cragside", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cragside")


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Give texts their time to become searchable at once: tests assert no timings, and a machine may be busy."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cragside.store.part_indexer._AT_ONCE_SECONDS", 60.0)
        yield


def pytest_collection() -> None:
    """Begin with other modules in each worker of xdist: else all of them compile all modules at the same time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        first = len(_LARGE) * int(worker.removeprefix("gw")) // workers
        for name in (*_LARGE[first:], *_LARGE[:first]):
            with suppress(ImportError):  # the tests that need it tell
                import_module(name)


def pytest_collection_finish() -> None:
    """Leave what collection made out of the search for garbage: a million objects of modules and test items."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each test into one stage of `make check`: the first that has one of its marks, before any is deselected."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        unit = "slow" not in marks and {"unit", "contract"} & set(item.path.parts)
        stages = (stage for stage, needed in _STAGES.items() if needed & marks)
        item.add_marker(pytest.mark.stage(name=next(stages, "test" if unit else "test-slow")))


class Sleeps:
    """Notes the long sleeps of a test that ended: those of the code below `tests`, not those of what it tests.

    A sleep that is cancelled stands for something that hangs. Short ones in a loop wait for something that happens.
    """

    def __init__(self) -> None:
        self.ended: list[float] = []
        self._sleep, self._async_sleep = time.sleep, asyncio.sleep

    def sleep(self, seconds: float) -> None:
        """Replaces `time.sleep`."""
        ended = self.ended
        self._sleep(seconds)
        if _is_long(seconds):
            ended.append(seconds)  # to the test that began it

    def async_sleep(self, delay: float, result: Any = None) -> Coroutine[Any, Any, Any]:
        """Replaces `asyncio.sleep`."""
        sleeping = self._async_sleep(delay, result)
        return self._noted(sleeping, delay, self.ended) if _is_long(delay) else sleeping

    async def _noted(self, sleeping: Coroutine[Any, Any, Any], delay: float, ended: list[float]) -> Any:
        result = await sleeping
        ended.append(delay)  # to the test that began it
        return result


_SLEEPS = Sleeps()


def _is_long(seconds: float) -> bool:
    return seconds > _LONGEST_SLEEP_SECONDS and sys._getframe(2).f_code.co_filename.startswith(_OURS)


def pytest_configure() -> None:
    """Watch who sleeps."""
    time.sleep, asyncio.sleep = _SLEEPS.sleep, _SLEEPS.async_sleep  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that sleeps and does not say why. Waits in fixtures, processes and time-outs are not seen."""
    _SLEEPS.ended = ended = []
    result = yield
    mark = item.get_closest_marker("waits")
    if ended and not (mark and mark.args):
        pytest.fail(
            f"It sleeps {max(ended):g} s. Let it move a clock (tests/clocks.py), or say in one word why it waits: "
            '@pytest.mark.waits("reason")',
            pytrace=False,
        )
    return result
