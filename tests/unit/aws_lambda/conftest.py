import io
import logging
from collections.abc import Callable, Iterator

import pytest
from lambda_stub import close, container, function_of

from cragside.bootstrap import Container
from cragside.entrypoints.aws_lambda import observability
from cragside.entrypoints.aws_lambda.function import Function

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
