"""`cragside serve` between a client and Ollama, with PostgreSQL, Neo4j and SearXNG: all of them real, all at once.

The embedded grader decides alone for the first service, with the model that the request names for the second one.
Both have the same databases. A way in front of Ollama keeps what it is asked.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.integration.test_on_postgres import cragside
from tests.services import searxng
from tests.services.backends import migrated
from tests.services.cragside_server import CragsideServer, Given
from tests.services.ollama import CHAT_MODEL, EMBEDDING_MODEL
from tests.services.threads import in_a_thread
from tests.services.way import Way

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.fixtures import Servers
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres

pytestmark = [pytest.mark.real_ollama, pytest.mark.real_searxng, pytest.mark.services("postgres", "neo4j")]

LAMP = "The lamp of the lighthouse at Skerry Point was lit by Ingrid Halvorsen in 1871."
NOTES = {"skerry.md": f"# Skerry Point\n\n{LAMP}", "bread.md": "# Bread\n\nA loaf of rye bakes for fifty minutes."}
ABOUT_THE_LAMP = "Who lit the lamp of the lighthouse at Skerry Point?"
NOT_SURELY_THE_LAMP = "Whose lamp burned at the coast?"
CANAL = "The Brennan canal was dug by Marta Okafor and forty miners between 1902 and 1907."
PAGE = {"title": "Brennan canal", "url": "https://canal.example/brennan", "content": CANAL}
ABOUT_THE_CANAL = "Could you please tell me who dug the Brennan canal?"
JUDGES = b"Judge whether a question can be answered with a passage."


@dataclass
class Stack:
    """Start the databases and the stubs of the services."""

    environment: dict[str, str]
    ollama: Way
    engine: searxng.Engine
    graphs: "Neo4j"

    @property
    def heard(self) -> str:
        """Return the requests to Ollama, to chat or to embed, as text."""
        return self.ollama.heard.decode(errors="replace")


@pytest.fixture(scope="module")
def stack(
    servers: "Servers", postgres: "Postgres", neo4j: "Neo4j", ollama: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    engine = searxng.Engine([PAGE])
    home: Path = tmp_path_factory.mktemp("stack")
    with (
        servers.private("searxng", lambda: searxng.SearxngServer(engine)) as web,
        in_a_thread(Way(httpx.URL(ollama).port or 0, keep=True)) as way,
        migrated(postgres) as uri,
    ):
        databases = {"POSTGRES_URI": uri, "NEO4J_URI": neo4j.uri}
        models = {"OLLAMA_BASE_URL": f"http://127.0.0.1:{way.port}", "RAG_EMBEDDING_MODEL": EMBEDDING_MODEL}
        yield Stack({**databases, **models, "SEARXNG_HOST": web.url}, way, engine, neo4j)
        engine.close()
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("NEO4J_URI", neo4j.uri)
            cragside(uri, home, "workspaces", "remove", "default", "--yes")


@pytest.fixture(scope="module")
def service(stack: Stack) -> Iterator[CragsideServer]:
    given = Given(documents=NOTES, environment={**stack.environment, "RAG_CHAT_MODEL": "embedded"})
    with CragsideServer(given) as running:
        _wait_until_enriched(running)
        yield running


def _wait_until_enriched(service: CragsideServer) -> None:
    """Otherwise Ollama might still embed what documents say while a question is asked."""
    deadline = time.monotonic() + 120
    with service.client() as client:
        while client.get("/v1/documents", params={"status": "enriched"}).json()["total"] < len(NOTES):
            assert time.monotonic() < deadline, client.get("/v1/documents").text
            time.sleep(0.1)


@pytest.fixture(autouse=True)
def forgotten(stack: Stack) -> None:
    stack.ollama.heard.clear()
    stack.engine.asked.clear()


@dataclass
class Answer:
    """The headers of an answer, and its lines."""

    headers: httpx.Headers
    lines: list[dict[str, Any]]

    @property
    def text(self) -> str:
        return "".join(line["message"]["content"] for line in self.lines)


def asked(service: CragsideServer, prompt: str, begun: Callable[[], None] = lambda: None) -> Answer:
    """Ask as a client of Ollama does. `begun` is called when the first line is there, before others are read."""
    message = {"role": "user", "content": prompt}
    body = {"model": CHAT_MODEL, "messages": [message], "options": {"num_predict": 12, "temperature": 0}}
    with service.client() as client, client.stream("POST", "/api/chat", json=body) as response:
        lines = response.iter_lines()
        first = next(lines)
        assert response.status_code == 200, first
        begun()
        return Answer(response.headers, [json.loads(line) for line in (first, *lines)])


def assert_streamed_by_the_model(answer: Answer) -> None:
    *some, last = answer.lines
    assert len(some) > 2
    assert not any(line["done"] for line in some)
    assert last["done"]
    assert last["eval_count"] > 2
    assert answer.text.strip()
    assert {line["model"] for line in answer.lines} == {CHAT_MODEL}
    assert "x-rag-degraded" not in answer.headers


def test_a_document_that_was_indexed_is_cited_to_the_model(stack: Stack, service: CragsideServer) -> None:
    answer = asked(service, f"/rag {ABOUT_THE_LAMP}")
    assert_streamed_by_the_model(answer)
    assert (answer.headers["x-rag-verdict"], answer.headers["x-rag-documents"]) == ("local", "1")
    assert re.search(rf"\[1\] Skerry Point - skerry\.md \([^)]*\) (\w+)\\n[^<]*{LAMP}\\n</evidence-\1>", stack.heard)
    assert "rye" not in stack.heard
    assert stack.engine.asked == []
    assert JUDGES.decode() not in stack.heard


def test_the_first_words_come_while_the_model_still_says_others(stack: Stack, service: CragsideServer) -> None:
    """The way lets only the first piece of Ollama's answer through, until the client has it."""

    def go_on() -> None:
        assert stack.ollama.holding
        stack.ollama.holds_after = b""

    stack.ollama.holds_after = b'"done":false'
    try:
        assert_streamed_by_the_model(asked(service, f"/rag {ABOUT_THE_LAMP}", begun=go_on))
    finally:
        stack.ollama.holds_after = b""


def test_neo4j_has_what_the_document_names(service: CragsideServer) -> None:
    deadline = time.monotonic() + 60
    with service.client() as client:
        while (found := client.get("/graph/entity/Ingrid Halvorsen")).status_code == 404:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert "skerry.md" in found.text


def test_the_web_is_searched_where_no_document_is_good_enough(stack: Stack, service: CragsideServer) -> None:
    answer = asked(service, f"/rag {ABOUT_THE_CANAL}")
    assert_streamed_by_the_model(answer)
    assert (answer.headers["x-rag-verdict"], answer.headers["x-rag-documents"]) == ("web", "1")
    (query,) = stack.engine.asked
    assert "Brennan canal" in query
    assert len(query) < len(ABOUT_THE_CANAL)
    assert re.search(rf"\[1\] Brennan canal - {PAGE['url']} \(web[^)]*\) (\w+)\\n{CANAL}\\n</evidence-\1>", stack.heard)
    assert LAMP not in stack.heard


def test_judgement_and_answer_come_from_the_model_that_the_request_names(stack: Stack, service: CragsideServer) -> None:
    environment = {**stack.environment, "RAG_SECOND_OPINION": "always"}
    with CragsideServer(Given(environment=environment)) as judged_by_model:
        answer = asked(judged_by_model, f"/rag {NOT_SURELY_THE_LAMP}")
        assert_streamed_by_the_model(answer)
        assert JUDGES.decode() in stack.heard
        assert f"{LAMP}\\n</evidence-" in stack.heard.partition(JUDGES.decode())[2].partition("POST /")[0]
        with judged_by_model.client() as client:
            asks = {"prompt": f"/rag {NOT_SURELY_THE_LAMP}", "model": CHAT_MODEL}
            told = client.post("/v1/explain", json=asks).raise_for_status().json()
    (grading,) = (step for step in told["steps"] if step["name"] == "grade")
    assert grading["asked"] > 0
    local = [candidate for candidate in told["candidates"] if candidate["source"] == "local"]
    assert {(candidate["reasons"]["judgement"] or {}).get("model") for candidate in local} <= {CHAT_MODEL, None}
    assert any(candidate["reasons"]["judgement"] for candidate in local)
    assert all(candidate["kept"] == (candidate["score"] > told["threshold"]) for candidate in local)
    assert answer.headers["x-rag-verdict"] == told["verdict"]
