"""Running the command line: on a container with replaced members, or on a store."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from cli_fakes import Replacements
from cli_services import RealCommands, answering
from typer import testing
from typer.testing import CliRunner

from cragside.domain.outcome import Degradation
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session
from tests.served import Served

# Typer would make all commands anew for each run, which takes longer than most of them.
testing._get_command = cache(testing._get_command)


@pytest.fixture
def container() -> Replacements:
    return Replacements()


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    return {"RAG_HOME": str(tmp_path / "home")}


@pytest.fixture
def run(container, environment, tmp_path):
    """Run `cragside` with these arguments on a container with replaced members."""

    def invoke(*arguments: str, given: str | bytes | None = None) -> Any:
        session = Session(environment=environment, folder=tmp_path, build=container.build)
        return CliRunner().invoke(app, list(arguments), input=given, obj=session)

    return invoke


@pytest.fixture
def degraded() -> Degradation:
    return Degradation("search", "SEARXNG_HOST is not set")


@pytest.fixture
def real(tmp_path) -> RealCommands:
    """Run `cragside` with these arguments on a store of its own."""
    return RealCommands(tmp_path / "home")


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    """A service with its worker, on another store; its token is "secret"."""
    with Served(tmp_path / "served") as service:
        yield service


@pytest.fixture
def stub():
    """A service that answers everything with one status and body: `with stub(status, body) as address`."""
    return answering
