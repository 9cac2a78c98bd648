"""Commands import only what they need: each library takes a part of a second."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import output_of

# The modules that are loaded when a command ends.
LOADED = """
import sys
from cragside.entrypoints.cli.main import main
sys.argv = ["cragside", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("loaded:", *[name for name, module in sys.modules.items() if module is not None])
"""
ROUTES = ("fastapi", "starlette", "mcp", "cragside.entrypoints.http.app")
# httpx has a command line of its own.
ANOTHER_COMMAND_LINE = ("httpx._main", "click", "pygments")
READERS = ("cragside.adapters.documents", "pypdfium2", "lxml", "trafilatura")
OTHER_COMMANDS = (
    "cragside.entrypoints.cli.ingest",
    "cragside.entrypoints.cli.serve",
    "cragside.entrypoints.cli.memory",
)
OF_NO_SEARCH = (*ROUTES, *ANOTHER_COMMAND_LINE, *READERS, *OTHER_COMMANDS, "langgraph", "langchain_core", "psutil")
QUESTION = "Who lights the lamp?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one document."""
    place = tmp_path_factory.mktemp("imports")
    (place / "lamp.md").write_text("# The lamp\n\nThe keeper lights the lamp at dusk.\n")
    loaded(place / "home", "ingest", str(place / "lamp.md"))
    return place / "home"


def loaded(home: Path, *arguments: str) -> set[str]:
    """Run a command and return the modules that it has loaded."""
    said = output_of(LOADED, *arguments, env={"RAG_HOME": str(home)})
    return set(said.rpartition("loaded: ")[2].split())


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        (("--help",), (*ROUTES, *ANOTHER_COMMAND_LINE, "pydantic", "numpy", "lightrag", "httpx", "rich")),
        (("status",), OF_NO_SEARCH),
        (("documents",), OF_NO_SEARCH),
        (("query", QUESTION), OF_NO_SEARCH),
    ],
)
def test_a_command_imports_nothing_of_what_it_does_not_need(
    home: Path, command: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    assert loaded(home, *command) & set(absent) == set()


def test_a_note_is_indexed_without_the_routes(home: Path, tmp_path: Path) -> None:
    (tmp_path / "oil.md").write_text("The oil is in the cellar.\n")
    assert loaded(home, "ingest", str(tmp_path / "oil.md")) & {*ROUTES, *ANOTHER_COMMAND_LINE} == set()


def test_routes_are_loaded_by_a_command_that_asks_them(home: Path) -> None:
    assert loaded(home, "graph", "Lamp") >= {"fastapi", "cragside.entrypoints.http.app"}


def test_the_mcp_server_answers_its_host_before_it_loads_the_indexer(home: Path) -> None:
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting})
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "mcp"],
        input=f"{message}\n",
        env={"RAG_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    answer, _, modules = done.stdout.rpartition("loaded: ")
    assert json.loads(answer)["result"]["serverInfo"]["name"] == "cragside", done.stderr
    assert {"numpy", "lightrag", "fastapi", "cragside.store.workspaces"} & set(modules.split()) == set()
