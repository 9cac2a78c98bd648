"""`POST /v1/explain` and `/rag?` against a real `cragside serve`, over the network."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

PROGRAM = (sys.executable, "-c", "from cragside.entrypoints.cli.main import main; main()")
TEXT = 'Joseph Swan lit Cragside with his lamps in 1880. <img src=x onerror="alert(1)">'
QUESTION = "Who lit Cragside?"
KEYS = {"coast": {"X-API-Key": "coast-token"}, "hills": {"X-API-Key": "hills-token"}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    home = tmp_path_factory.mktemp("served")
    log = home / "log"
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RAG_HOME": str(home / "store"),
        "PYTHONUNBUFFERED": "1",
        "RAG_WORKSPACE_TOKENS": json.dumps({"coast-token": ["coast"], "hills-token": ["hills"]}),
        "OLLAMA_HOST": "127.0.0.1:9",  # nobody listens there
    }
    with log.open("w") as out:
        command = [*PROGRAM, "serve", "--port", "0"]
        serving = subprocess.Popen(command, cwd=home, env=environment, stdout=out, stderr=out)
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
            assert serving.poll() is None, log.read_text()
            time.sleep(0.05)
        with httpx.Client(base_url=found[0], trust_env=False, timeout=60) as client:
            document = {"name": "cragside.md", "title": "Cragside", "text": TEXT}
            answer = client.post("/v1/documents", json=document, headers=KEYS["coast"])
            assert answer.status_code == 202, answer.text
            asked = {"query": QUESTION}
            while not client.post("/v1/query", json=asked, headers=KEYS["coast"]).json()["results"]:
                time.sleep(0.1)
            yield client
    finally:
        serving.terminate()
        serving.wait(60)


def test_the_events_arrive_and_end_with_the_evidence(service: httpx.Client) -> None:
    names: list[str] = []
    data: dict[str, Any] = {}
    headers = {**KEYS["coast"], "Accept": "text/event-stream"}
    with service.stream("POST", "/v1/explain", json={"prompt": QUESTION}, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("event: "):
                names.append(line.removeprefix("event: "))
            elif line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
    assert names == ["step"] * 4 + ["done"]
    assert data["candidates"][0]["content"] == TEXT
    assert data["candidates"][0]["kept"] is True


def test_another_tenant_sees_nothing_of_it(service: httpx.Client) -> None:
    told = service.post("/v1/explain", json={"prompt": QUESTION}, headers=KEYS["hills"])
    assert told.status_code == 200
    assert told.json()["candidates"] == []
    assert TEXT not in told.text
    assert told.json()["prompt"].endswith(QUESTION)
    named = service.post("/v1/explain", json={"prompt": QUESTION, "workspace": "coast"}, headers=KEYS["hills"])
    assert named.status_code == 401
    assert service.post("/v1/explain", json={"prompt": QUESTION}).status_code == 401


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_gets_the_explanation_where_no_ollama_runs(service: httpx.Client, path: str, stream: bool) -> None:
    text = f"/rag? {QUESTION}"
    prompt = {"prompt": text} if path == "/api/generate" else {"messages": [{"role": "user", "content": text}]}
    answer = service.post(path, json={"model": "m", "stream": stream, **prompt}, headers=KEYS["coast"])
    assert answer.status_code == 200, answer.text
    assert "Verdict: local" in answer.text
    assert "Joseph Swan lit Cragside" in answer.text
    hidden = service.post(path, json={"model": "m", "stream": stream, **prompt}, headers=KEYS["hills"])
    assert "Joseph Swan" not in hidden.text
