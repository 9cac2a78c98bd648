"""The npm package, built and called by the AI SDK: cragside gives the evidence, a model host beside it the answer."""

import json
from pathlib import Path

import pytest

from tests.hosts import packages
from tests.hosts.conftest import LAMP, PROGRAMS
from tests.hosts.upstream import ANSWER, Upstream
from tests.services import npm, tools
from tests.services.cragside_server import CragsideServer
from tools.npm_package import build

pytestmark = pytest.mark.hosts

QUESTION = "/rag what does the lamp burn?"
FAILURES = ("redirected", "silent", "no_messages", "no_passages", "nothing")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which Node finds the package beside those of the hosts."""
    modules = tmp_path / "node_modules"
    modules.mkdir()
    for each in packages.node_modules().iterdir():
        (modules / each.name).symlink_to(each)
    (modules / "cragside").mkdir()
    build(modules / "cragside")
    return tmp_path


def test_the_middleware_brings_evidence_in_and_sources_out(
    folder: Path, cragside: CragsideServer, upstream: Upstream
) -> None:
    for name in ("telling.mjs", "middleware.mjs"):
        (folder / name).write_text((PROGRAMS / name).read_text())
    command = [str(npm.NODE), "middleware.mjs", f"http://{upstream.address}", cragside.url]
    told = json.loads(tools.run(command, cwd=folder, seconds=120))
    cited = [ANSWER, [["document", "lamp.md", 1]]]
    assert told == {
        "commanded": cited,
        "always": cited,
        "streamed": [ANSWER, ["lamp.md"]],
        "plain": [ANSWER, []],
        "ragtime": [ANSWER, []],
        "unreachable": [ANSWER, [], 1],
        **{name: [ANSWER, [], 1] for name in FAILURES},
        "other_command": [ANSWER, [], True],
    }
    prompts = [body["messages"][-1]["content"] for _, body in upstream.asked]
    given, others = prompts[:3], prompts[3:]
    assert all(LAMP in prompt and prompt.endswith("what does the lamp burn?") for prompt in given)
    assert not any("/rag" in prompt for prompt in given)
    assert others == [
        "what does the lamp burn? plain",
        "/ragtime plain",
        *[f"{QUESTION} plain"] * (1 + len(FAILURES)),
        "/docs plain",
    ]
