"""The model that grades fails in each way."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from tests.faults.faults import Way
from tests.faults.matrix import FAULTS
from tests.faults.stack import SWAN, WHO, Stack, serving
from tests.faults.wrong_server import HTTP
from tests.services.ollama import CHAT_MODEL

if TYPE_CHECKING:
    from tests.services.toxiproxy import Toxiproxy

pytestmark = pytest.mark.real_ollama

# The model takes a second to grade a passage. More time would let a request about the host itself fail first.
BUDGET = 8.0
SETTINGS = {
    "RAG_CHAT_MODEL": CHAT_MODEL,
    "RAG_EMBEDDING_MODEL": "embedded",
    "RAG_TIMEOUT_SECONDS": str(BUDGET),
    "RAG_CANDIDATES": "1",
}


def _the_model_grades(http: httpx.Client) -> bool:
    """Whether the grades are the model's."""
    told = http.post("/v1/explain", json={"prompt": f"/rag {WHO}"}).raise_for_status().json()
    (grading,) = (step for step in told["steps"] if step["name"] == "grade")
    return bool(grading["grader"] == CHAT_MODEL)


@pytest.fixture(scope="module")
def stack(ollama: str, toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    with (
        toxiproxy.proxy(urlsplit(ollama).port or 0) as proxy,
        serving({}, OLLAMA_BASE_URL=f"http://127.0.0.1:{proxy.port}", **SETTINGS) as service,
    ):
        # How so small a model grades is a matter of luck, and it takes a minute to extract.
        stack = Stack(
            "Ollama's chat model",
            service,
            Way(proxy, HTTP, too_long=BUDGET),
            WHO,
            says="",
            brought=_the_model_grades,
            budget=BUDGET,
            besides=frozenset({"rewriter"}),
            enrich=False,
            passes=False,
        )
        with service.client() as http:
            for name, text in SWAN.items():
                stack.send(http, name, text)
            stack.heals(http)
        yield stack


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_chat(stack: Stack, fault: str) -> None:
    stack.withstands(fault)
