"""Clients that are generated from `/openapi.json` call a service that runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.served import Served
from tests.services import generators, npm, tools

pytestmark = pytest.mark.clients

TOKEN = "secret"
PROGRAMS = Path(__file__).parent


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path / "home", RAG_API_TOKEN=TOKEN) as served:
        yield served


@pytest.fixture
def document(service: Served, tmp_path: Path) -> Path:
    """The service's own description of itself."""
    answer = httpx.get(f"{service.address}/openapi.json", headers={"X-API-Key": TOKEN})
    file = tmp_path / "openapi.json"
    file.write_bytes(answer.raise_for_status().content)
    return file


def check(told: dict[str, Any]) -> None:
    assert told["alive"] == {"ok": True}
    assert (told["names"], told["outcomes"]) == ([["lamp.md"], ["pump.md"]], ["new", "new"])
    assert (told["verdict"], told["source"]) == ("local", "lamp.md")
    assert told["relevance"] == told["score"] > 0.6
    ranked, near = told["similarity"]
    assert 0 < ranked == near <= 1
    assert (told["ungraded"], told["results"], told["deleted"]) == (None, [4, 4], 204)
    assert told["errors"] == ["validation_error", "not_found", "unauthorized"]


def test_a_python_client_calls_the_service(service: Served, document: Path, tmp_path: Path) -> None:
    python = generators.python_client(document, tmp_path)
    command = [str(python), str(PROGRAMS / "call_service.py"), service.address, TOKEN]
    check(json.loads(tools.run(command, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, seconds=60)))


def test_a_typescript_client_calls_the_service(service: Served, document: Path, tmp_path: Path) -> None:
    program = generators.typescript_client(document, tmp_path, PROGRAMS / "call_service.ts")
    check(json.loads(tools.run([str(npm.NODE), str(program), service.address, TOKEN], cwd=tmp_path, seconds=60)))
