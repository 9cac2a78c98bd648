import io
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lambda_stub import close, container, function_of

from cragside.bootstrap import Container
from cragside.entrypoints.aws_lambda import runtime as observability
from cragside.entrypoints.aws_lambda.function import Function

if TYPE_CHECKING:
    from generations_stub import World

# The function's logger is the package's. A Lambda environment has it to itself; the other tests should not meet it.
_LOGGER = logging.getLogger(observability.SERVICE)
(_HANDLER,) = _LOGGER.handlers
assert isinstance(_HANDLER, logging.StreamHandler)
_LOGGER.removeHandler(_HANDLER)
_LOGGER.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def log() -> Iterator[io.StringIO]:
    """Return the log of a function."""
    stream = io.StringIO()
    _HANDLER.setStream(stream)
    _LOGGER.addHandler(_HANDLER)
    _LOGGER.setLevel(logging.INFO)
    yield stream
    _LOGGER.removeHandler(_HANDLER)
    _LOGGER.setLevel(logging.NOTSET)


@pytest.fixture
def started() -> Iterator[Callable[[Container], Function]]:
    """Starts functions that are closed after the test."""
    functions: list[tuple[Function, Container]] = []

    def start(built: Container) -> Function:
        functions.append((function_of(built), built))
        return functions[-1][0]

    yield start
    for function, built in functions:
        close(function, built)


@pytest.fixture
def function(started: Callable[[Container], Function]) -> Function:
    return started(container())


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> "AsyncIterator[World]":
    """A bucket of generations, with its queue. The temporary directory has to be empty in the end."""
    from generations_stub import World
    from moto import mock_aws

    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with mock_aws():
        made = World()
        yield made
        await made.close()
    assert list(temporary.iterdir()) == [], "nothing is left in the temporary directory"
