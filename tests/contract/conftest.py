"""The databases that have to keep the same contract."""

from collections.abc import Iterator

import pytest

from cragside.store.backends.interface import Backend
from tests.services.backends import BACKENDS, THROUGH_POOLER, made


@pytest.fixture(params=[*BACKENDS, THROUGH_POOLER])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A new database of each kind."""
    with made(request) as backend:
        yield backend


@pytest.fixture(scope="module", params=BACKENDS)
def shared_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """A database of each kind that all tests of a module share."""
    with made(request) as backend:
        yield backend
