from collections.abc import Callable, Iterator

import pytest
from lambda_stub import container, function_of

from cragside.bootstrap import Container
from cragside.entrypoints.aws_lambda.function import Function


@pytest.fixture
def started() -> Iterator[Callable[[Container], Function]]:
    """Starts functions that are closed after the test."""
    functions: list[Function] = []

    def start(built: Container) -> Function:
        functions.append(function_of(built))
        return functions[-1]

    yield start
    for function in functions:
        function.close()


@pytest.fixture
def function(started: Callable[[Container], Function]) -> Function:
    return started(container())
