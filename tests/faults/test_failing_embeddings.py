"""The model that embeds fails in each way."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.faults.faults import Way
from tests.faults.matrix import DOCUMENT, FAULTS
from tests.faults.stack import SWAN, WHO, Stack, serving
from tests.faults.wrong_server import HTTP
from tests.services.ollama import EMBEDDING_MODEL

if TYPE_CHECKING:
    from tests.services.toxiproxy import Toxiproxy

pytestmark = pytest.mark.real_ollama

# More time would let a request about the host itself fail first.
BUDGET = 8.0


@pytest.fixture(scope="module")
def stack(ollama: str, toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    settings = {
        "RAG_CHAT_MODEL": "embedded",
        "RAG_EMBEDDING_MODEL": EMBEDDING_MODEL,
        "RAG_TIMEOUT_SECONDS": str(BUDGET),
    }
    with toxiproxy.proxy(urlsplit(ollama).port or 0) as proxy:
        way = Way(proxy, HTTP, too_long=BUDGET)
        with serving(SWAN, OLLAMA_BASE_URL=f"http://127.0.0.1:{proxy.port}", **settings) as service:
            yield Stack(
                "Ollama's embedding model",
                service,
                way,
                WHO,
                DOCUMENT,
                budget=BUDGET,
                passes=False,
            )


@pytest.mark.parametrize("fault", FAULTS)
def test_failing_embeddings(stack: Stack, fault: str) -> None:
    stack.withstands(fault)
