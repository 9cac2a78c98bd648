"""Running the command line on a container of fakes."""

from typing import Any

import pytest
from cli_fakes import FakeContainer
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
