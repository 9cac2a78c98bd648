"""The databases that have to keep the same contract."""

import pytest

from cragside.adapters.lightrag.backends.interface import Backend
from cragside.adapters.lightrag.backends.memory import MemoryBackend
from cragside.adapters.lightrag.backends.sqlite import SqliteBackend

BACKENDS: dict[str, type[Backend]] = {"memory": MemoryBackend, "sqlite": SqliteBackend}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    """A new database of each kind."""
    return BACKENDS[request.param]()


@pytest.fixture(scope="module", params=list(BACKENDS))
def shared_backend(request: pytest.FixtureRequest) -> Backend:
    """A database of each kind that all tests of a module share."""
    return BACKENDS[request.param]()
