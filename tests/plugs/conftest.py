"""cragside with a token, and the programs of hosts that have a plug of it."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.hosts import packages
from tests.services import tools
from tests.services.cragside_server import CragsideServer, Given

PROGRAMS = Path(__file__).parent / "programs"
SOURCES = Path(__file__).parents[2] / "layers/core/python"
LAMP = "The lamp of the lighthouse at Cragside burns colza oil, and the keeper trims it every four hours."
TOKEN = "a-token-of-the-plugs"
Run: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture(scope="package")
def cragside() -> Iterator[CragsideServer]:
    with CragsideServer(Given(token=TOKEN, documents={"lamp.md": LAMP})) as server:
        yield server


@pytest.fixture
def run(cragside: CragsideServer, tmp_path: Path) -> Run:
    """A function that runs a program of a host with cragside's address, and returns what it told."""
    return partial(run_program, cragside, tmp_path)


def run_program(
    cragside: CragsideServer, home: Path, program: str, *arguments: str, python: Path | None = None
) -> dict[str, Any]:
    """Run a program of a host with cragside's address, and return its report."""
    own = {
        "HOME": str(home),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(SOURCES),
        "TOKEN": TOKEN,
        # Open WebUI's
        "DATA_DIR": str(home),
        "OFFLINE_MODE": "True",
        "WEBUI_SECRET_KEY": TOKEN,
    }
    command = [str(python or packages.python()), str(PROGRAMS / program), cragside.url, *arguments]
    output = tools.run(command, env=own, inherit=False, cwd=home, seconds=300)
    result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return result
