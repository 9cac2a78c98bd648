"""Running the command line on a container of fakes."""

from collections.abc import Iterator
from typing import Any

import pytest
from cli_fakes import FakeContainer
from cli_services import RealCommands, Served, answering
from typer.testing import CliRunner

from cragside.domain.outcome import Degradation
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session


@pytest.fixture
def container() -> FakeContainer:
    return FakeContainer()


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    return {"RAG_HOME": str(tmp_path / "home")}


@pytest.fixture
def run(container, environment):
    """Run `cragside` with these arguments on the fakes."""

    def build(settings: Any) -> FakeContainer:
        container.settings = settings
        return container

    def invoke(*arguments: str, given: str | bytes | None = None) -> Any:
        session = Session(environment=environment, build=build)
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
