"""The function as `sam local` serves it, with a true /opt: with a baked store, and with databases. `make sam-e2e`."""

import os
import secrets
from collections.abc import Iterator

import pytest

from infra.smoke import QUESTION
from tests.containers.engine import Engine, Failed
from tests.containers.report import say
from tests.containers.sam import Served, prepare, serving
from tests.services.requirement import stay_down
from tests.services.tools import Unavailable

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def served(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """dev's baked store."""
    folder, token = tmp_path_factory.mktemp("sam"), secrets.token_hex(24)
    (folder / ".env").write_text(f"CRAGSIDE_API_TOKEN={token}\n")
    try:
        sam = prepare(engine, folder, folder / ".env")
    except (Unavailable, Failed) as reason:
        say(f"NOT RUN: sam local was not started: {reason}")
        stay_down(f"sam local could not be had: {reason}", os.environ, "CONTAINERS")
    with serving(engine, folder, sam):
        yield Served(engine, token)


def test_a_question_is_answered_with_citations(served: Served) -> None:
    status, answer = served.ask(f"/rag {QUESTION}", served.token)
    assert status == 200, answer
    found = answer["metadata"]["rag_context"]
    say(f"POST /v1/enrich {QUESTION!r}: {status}, {found['verdict']}, {found['documents'][0]['title']}")
    assert (found["verdict"], found["degraded"]) == ("local", [])
    assert "[1] Mercury, the innermost planet" in answer["prompt"]


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_there_is_no_answer(served: Served, token: str | None) -> None:
    status, answer = served.ask(f"/rag {QUESTION}", token)
    assert (status, answer["error"]["type"]) == (401, "unauthorized")


def test_the_layers_are_merged_into_opt(served: Served) -> None:
    (running, *_) = served.engine.docker("ps", "--quiet").split()
    for path in ("/opt/python/cragside", "/opt/python/lightrag", "/opt/knowledge/baked.json", "/var/task/handler.py"):
        served.engine.docker("exec", running, "test", "-e", path)
    say("/opt holds core, LightRAG and the baked store")
