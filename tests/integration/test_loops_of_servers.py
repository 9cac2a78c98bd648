"""A server whose model host is itself, or another one whose host is the first, refuses what comes back to it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.services.cragside_server import CragsideServer, Given

DOCUMENTS = {"gate.txt": "Gate C17 of Selby airport serves the flights to Lunde and Holm."}
ASKED = [{"role": "user", "content": "/rag Which flights does gate C17 of Selby airport serve?"}]
HOSTS = {"ollama": "ollama+{}", "openai": "openai+{}/v1"}
# What a server sends beside the request itself: lists of models, windows, grades.
MOST_REQUESTS = 40


@contextmanager
def looping(api: str, length: int) -> Iterator[list[CragsideServer]]:
    """As many servers, each of which is the model host of the one before, the first that of the last."""
    first = Given(documents=DOCUMENTS, environment={"RAG_CHAT_MODEL": "embedded"})
    servers = [CragsideServer(first), *(CragsideServer() for _ in range(length - 1))]
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.remove)
        servers[0].start()  # with a loop, the document would wait for the host
        servers[0].stop()
        for number, server in enumerate(servers):
            host = HOSTS[api].format(servers[(number + 1) % length].url)
            server.given = Given(environment={"RAG_MODEL_HOST": host, "RAG_PROMPTS": "always"})
            server.start()
        yield servers


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("api", HOSTS)
def test_a_request_that_comes_back_is_refused_after_a_few_others(api: str, length: int) -> None:
    with looping(api, length) as servers, servers[0].client() as client:
        for path in ("/api/chat", "/v1/chat/completions"):
            for stream in (True, False):
                told(client.post(path, json={"model": "m", "messages": ASKED, "stream": stream}), path)
        told(client.get("/v1/models"), "/v1/models")
        told(client.get("/api/tags"), "/api/tags")
        told(client.delete("/api/delete"), "/api/delete")
        assert 7 <= sum(map(requests_of, servers)) < 7 * MOST_REQUESTS


def told(answer: httpx.Response, path: str) -> None:
    error: Any = answer.json()["error"]
    assert answer.status_code == 508
    assert "leads back to cragside itself" in (error if path.startswith("/api") else error["message"])


def requests_of(server: CragsideServer) -> int:
    return sum(f" {verb} /" in line for line in server.log.splitlines() for verb in ("GET", "POST", "DELETE"))


def test_a_server_may_stand_before_another_one() -> None:
    with looping("ollama", 2) as (first, second):
        second.stop()
        second.given = Given()  # it has a host of its own, which is down
        second.start()
        with first.client() as client:
            answer = client.get("/api/tags")
    assert answer.status_code == 502
    assert "Ollama does not answer" in answer.json()["error"]
