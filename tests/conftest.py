"""What holds for every test."""

import gc
import os
from contextlib import suppress
from importlib import import_module

import pytest
from hypothesis import settings

pytest_plugins = ("tests.services.fixtures",)

# What takes longest to compile of all that the tests import.
_LARGE = (
    "cragside.crag.graph", "pandas", "schemathesis", "qdrant_client", "hypothesis", "redis", "fastapi.openapi.models",
    "cragside.adapters.lightrag.lean", "moto", "neo4j", "openpyxl", "aiohttp", "PIL.Image", "rich.progress",
)  # fmt: skip

# While modules are imported and items made, Python's threshold of 700 new objects searches for garbage all the time.
gc.set_threshold(20_000, 20, 20)

# Tests assert no timings: an example may take its time on a busy machine. CI tries the same examples for the same code;
# a run at a desk tries new ones each time.
settings.register_profile("cragside", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cragside")


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


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep what is no unit and no contract out of `make test`."""
    if not {"unit", "contract"} & set(item.path.parts):
        item.add_marker("apart")
