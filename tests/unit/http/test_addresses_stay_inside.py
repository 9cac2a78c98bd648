"""Clients are not told where other services are; the log and the command line are."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.log import message_of
from cragside.settings import Settings

DEAD = "127.0.0.1:9"


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Before an Ollama and a SearXNG where nothing listens."""
    services = {"ollama_base_url": f"http://u:hush@{DEAD}/o", "searxng_host": f"http://u:hush@{DEAD}/s"}
    built = Container(Settings(home=tmp_path / "kb", chat_model="qwen2.5:7b", **services))  # type: ignore[call-arg,arg-type]
    transport = httpx.ASGITransport(app=create_app(built))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client
    await built.close()


async def test_no_answer_names_the_address_of_a_service(http: httpx.AsyncClient, tmp_path: Path) -> None:
    text = {"text": "Water power lit Cragside.", "name": "a.txt"}
    answers = [
        await http.post("/v1/documents", json=text),
        await http.post("/v1/enrich", json={"prompt": "/rag who won the football World Cup?"}),
        await http.post("/query", json={"query": "what lit Cragside?"}),
        await http.post("/v1/memories/search", json={"query": "what lit Cragside?"}),
        await http.get("/v1/settings"),
        await http.get("/health"),
        await http.get("/v1/components"),
    ]
    assert "SearXNG does not answer" in answers[1].text
    assert "Ollama does not answer" in answers[4].text
    for answer in answers:
        assert not [said for said in (DEAD, "127.0.0.1", "hush", str(tmp_path)) if said in answer.text], answer.text


def test_the_command_line_reports_every_cause_of_the_failure() -> None:
    down = ServiceUnavailable("ollama", "Ollama does not answer").at("http://gpu.lan:11434")
    with pytest.raises(ServiceUnavailable) as raised:
        raise ServiceUnavailable("grader", down.message) from down
    error = raised.value
    assert message_of(error) == "grader: Ollama does not answer [http://gpu.lan:11434]"
    assert "gpu.lan" not in json.dumps(dict(error.details)) + error.message
