"""Open WebUI's server of pipelines loads the pipeline, and answers the requests that Open WebUI sends to it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.plugs.conftest import LAMP, SOURCES, TOKEN
from tests.plugs.pipelines import ID, KEY, Pipelines
from tests.services.cragside_server import CragsideServer

pytestmark = pytest.mark.hosts

QUESTION = "What does the lamp burn?"


@pytest.fixture(scope="module")
def server(cragside: CragsideServer) -> Iterator[Pipelines]:
    with Pipelines(SOURCES, cragside.url, TOKEN) as running:
        yield running


@pytest.fixture
def pipelines(server: Pipelines) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
        yield client


def chat(pipelines: httpx.Client, text: str) -> list[dict[str, Any]]:
    """The messages that Open WebUI gets back for a chat, which it sends as its `process_pipeline_inlet_filter` does."""
    user = {"id": "1", "email": "keeper@example.org", "name": "Keeper", "role": "user"}
    others = {"model": "m", "stream": True, "metadata": {"chat_id": "1"}}
    messages = [{"role": "user", "content": text}]
    answer = pipelines.post(f"/{ID}/filter/inlet", json={"user": user, "body": {**others, "messages": messages}})
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    enriched: list[dict[str, Any]] = told.pop("messages")
    assert told == others
    return enriched


def unchanged(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def test_it_is_listed_as_a_filter_for_all_models(pipelines: httpx.Client) -> None:
    (model,) = pipelines.get("/models").json()["data"]
    assert (model["id"], model["name"]) == (ID, "cragside")
    assert model["pipeline"] == {"type": "filter", "pipelines": ["*"], "priority": 0, "valves": True}


def test_a_chat_with_the_command_gets_evidence_and_no_other(pipelines: httpx.Client) -> None:
    evidence, question = chat(pipelines, f"/rag {QUESTION}")
    assert evidence["role"] == "system"
    assert LAMP in evidence["content"]
    assert question == {"role": "user", "content": QUESTION}
    assert chat(pipelines, QUESTION) == unchanged(QUESTION)


def test_valves_change_the_workspace_and_the_command(pipelines: httpx.Client, server: Pipelines) -> None:
    empty = {"workspace": "empty"}
    pipelines.post(f"/{ID}/valves/update", json=empty).raise_for_status()
    assert LAMP not in str(chat(pipelines, f"/rag {QUESTION}"))
    assert "go on without evidence" not in server.log

    pipelines.post(f"/{ID}/valves/update", json={"command": "/docs"}).raise_for_status()
    assert "will go on without evidence: The endpoint did not answer with evidence" in server.log
    assert chat(pipelines, f"/docs {QUESTION}") == unchanged(f"/docs {QUESTION}")
    assert "message goes on without evidence" in server.log

    pipelines.post(f"/{ID}/valves/update", json={}).raise_for_status()
    assert LAMP in str(chat(pipelines, f"/rag {QUESTION}"))


def test_nobody_reads_or_turns_away_the_token_by_the_valves(pipelines: httpx.Client, server: Pipelines) -> None:
    """The server asks nobody for a key to its valves."""
    given = httpx.post(f"{server.url}/{ID}/valves/update", json={"endpoint": "http://127.0.0.1:9", "token": "x"})
    shown = httpx.get(f"{server.url}/{ID}/valves").text + httpx.get(f"{server.url}/{ID}/valves/spec").text
    assert given.is_success
    assert TOKEN not in shown
    assert "endpoint" not in shown
    assert LAMP in str(chat(pipelines, f"/rag {QUESTION}"))
    assert TOKEN not in server.log
