"""The model that gives a second opinion fails in each way."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from tests.faults.faults import Way
from tests.faults.matrix import FAULTS
from tests.faults.stack import SWAN, Stack, serving
from tests.faults.wrong_server import HTTP
from tests.services.ollama import CHAT_MODEL

if TYPE_CHECKING:
    from tests.services.toxiproxy import Toxiproxy

pytestmark = pytest.mark.real_ollama

# No passage passes for this one, so that the model is asked.
UNSURE = "Which man lit a house?"
# The model takes a second to judge a passage. More time would let a request about the host itself fail first.
BUDGET = 8.0
SETTINGS = {
    "RAG_CHAT_MODEL": CHAT_MODEL,
    "RAG_SECOND_OPINION": "always",
    "RAG_EMBEDDING_MODEL": "embedded",
    "RAG_TIMEOUT_SECONDS": str(BUDGET),
    "RAG_CANDIDATES": "1",
    "SEARXNG_HOST": "",  # which would have an answer in place of the document
}


def _the_model_judges(http: httpx.Client) -> bool:
    """Tell if the model judged the passage."""
    told = http.post("/v1/explain", json={"prompt": f"/rag {UNSURE}"}).raise_for_status().json()
    judged = [each["reasons"]["judgement"] for each in told["candidates"] if each["source"] == "local"]
    return [each["model"] for each in judged if each] == [CHAT_MODEL]


@pytest.fixture(scope="module")
def stack(ollama: str, toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    with (
        toxiproxy.proxy(urlsplit(ollama).port or 0) as proxy,
        serving({}, OLLAMA_BASE_URL=f"http://127.0.0.1:{proxy.port}", **SETTINGS) as service,
    ):
        # How so small a model judges is a matter of luck, and it takes a minute to extract.
        stack = Stack(
            "Ollama's chat model",
            service,
            Way(proxy, HTTP, too_long=BUDGET),
            UNSURE,
            says="",
            brought=_the_model_judges,
            budget=BUDGET,
            besides=frozenset({"rewriter", "search"}),
            later=(f"{CHAT_MODEL} takes ",),
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
