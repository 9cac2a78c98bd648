"""The blocks of the README work when they are pasted into a fresh shell."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def json_objects(printed: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that begin in the first column or behind another one."""
    decoder, at = json.JSONDecoder(), 0
    while (at := printed.find('{"', at)) >= 0:
        found, at = decoder.raw_decode(printed, at)
        yield found


def _first_block() -> list[str]:
    """What the README says that `cragside ask` prints."""
    command, *shown = (ROOT / "README.md").read_text().split("```text\n")[1].split("```")[0].splitlines()
    assert command == '$ cragside ask "Who lit Cragside?"'
    return shown


@pytest.mark.enable_socket
@pytest.mark.guides
def test_the_blocks_of_the_readme_run_in_a_fresh_shell(tmp_path: Path) -> None:
    notes, service = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # The environment of the tests takes the place of the one that `make demo` makes.
    script = f"{notes}\n{service}".replace('"$PWD/.venv/bin:$PATH"', f'"{Path(sys.executable).parent}:$PATH"')
    script = script.replace("8642", str(free_port()))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OLLAMA_HOST": f"127.0.0.1:{free_port()}"}
    ran = subprocess.run(
        ["bash", "-e", "-m", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout
    shown = [line for line in _first_block() if line != "..."]
    printed = iter(told.splitlines())
    assert all(line in printed for line in shown), "in this order"
    answers: dict[str, Any] = {}
    for answer in json_objects(told):
        for name in answer:
            answers.setdefault(name, answer)
    assert answers["documents"]["documents"][0]["outcome"] == "new"
    assert "relevance" in answers["prompt"]["prompt"]
    assert answers["results"]["results"]
    assert answers["entity"]["entity"]["name"].lower() == "cragside"
    assert answers["indexed"]["indexed"] is True
    assert "6380" in answers["text"]["text"]
