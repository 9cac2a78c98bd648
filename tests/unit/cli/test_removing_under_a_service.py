"""`cragside workspaces remove` in one process, while `cragside serve` has the workspace open in another."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from cli_services import RealCommands

from tests.programs import CRAGSIDE

pytestmark = pytest.mark.slow


def test_a_running_service_forgets_the_workspace_and_keeps_what_comes_next(real: RealCommands, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "RAG_HOME": str(real.home), "PYTHONUNBUFFERED": "1"}
    log = tmp_path / "log"
    with log.open("w") as out:
        service = subprocess.Popen(
            [*CRAGSIDE, "serve", "--port", "0"], cwd=tmp_path, env=environment, stdout=out, stderr=out
        )
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
            assert service.poll() is None, log.read_text()
            time.sleep(0.02)
        with httpx.Client(base_url=found[0], headers={"X-RAG-Workspace": "w"}, trust_env=False, timeout=60) as client:
            _bring(client, "otter.md", "Sea otters eat urchins in the kelp forest.")
            assert _found(client, "What do sea otters eat?") == ["otter.md"]
            removed = subprocess.run(
                [*CRAGSIDE, "workspaces", "remove", "w", "--yes", "--json"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            assert json.loads(removed.stdout)["documents"] == 1
            assert _found(client, "What do sea otters eat?") == []
            assert _names(client) == []
            _bring(client, "pump.md", "A heat pump moves heat from a cold place to a warm one.")
            assert _names(client) == ["pump.md"]
            assert _found(client, "What does a heat pump move?") == ["pump.md"]
    finally:
        service.terminate()
        service.wait(60)
    assert [row["documents"] for row in real.json("workspaces", "list")] == [1]


def _bring(client: httpx.Client, name: str, text: str) -> None:
    answer = client.post("/v1/documents", json={"workspace": "w", "text": text, "name": name})
    assert answer.status_code == 202, answer.text
    while client.post("/v1/query", json={"workspace": "w", "query": text}).json()["results"] == []:
        time.sleep(0.02)


def _names(client: httpx.Client) -> list[str]:
    return [document["name"] for document in client.get("/v1/documents?workspace=w").json()["documents"]]


def _found(client: httpx.Client, query: str) -> list[str]:
    answer = client.post("/v1/query", json={"workspace": "w", "query": query}).json()
    return [result["source"] for result in answer["results"]]
