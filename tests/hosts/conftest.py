"""cragside between the hosts and a scripted model host, once for each file."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.hosts import packages
from tests.hosts.catalogue import Host
from tests.hosts.upstream import Upstream
from tests.services import npm, tools
from tests.services.cragside_server import CragsideServer, Given

PROGRAMS = Path(__file__).parent / "programs"
LAMP = "The lamp of the lighthouse at Cragside burns colza oil, and the keeper trims it every four hours."
Run: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as serving:
        yield serving


@pytest.fixture(scope="module")
def cragside(upstream: Upstream) -> Iterator[CragsideServer]:
    with CragsideServer(Given(documents={"lamp.md": LAMP}), ollama=upstream.address) as server:
        yield server


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A function that runs a host's program with an address and a key, and returns what it told."""

    def told(host: Host, *arguments: str) -> dict[str, Any]:
        for file in PROGRAMS.iterdir():
            if file.is_file():
                shutil.copy(file, tmp_path)
        if host.node:
            (tmp_path / "node_modules").symlink_to(packages.node_modules())
        python = npm.NODE if host.node else packages.python()
        own = {"HOME": str(tmp_path), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PATH": "/usr/bin:/bin"}
        command = [str(python), host.program, *arguments]
        output = tools.run(command, env=own, inherit=False, cwd=tmp_path, seconds=300)
        result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
        return result

    return told
