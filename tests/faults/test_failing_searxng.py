"""The web search fails in each way."""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.faults.faults import Way
from tests.faults.matrix import FAULTS
from tests.faults.stack import BUDGET, SWAN, WHO, Stack, serving
from tests.faults.wrong_server import HTTP
from tests.services.searxng import Engine, SearxngServer

if TYPE_CHECKING:
    from tests.services.fixtures import Servers
    from tests.services.toxiproxy import Toxiproxy

pytestmark = pytest.mark.real_searxng

# The document does not suffice for it, and is good enough where nothing else is found.
ASKED = "What did Gustave Eiffel design for Joseph Swan?"


@pytest.fixture(scope="module")
def stack(servers: "Servers", toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    with (
        closing(Engine()) as engine,
        servers.private("searxng", lambda: SearxngServer(engine)) as searxng,
        toxiproxy.proxy(searxng.port) as proxy,
        serving(SWAN, SEARXNG_HOST=f"http://127.0.0.1:{proxy.port}") as service,
    ):
        way = Way(proxy, HTTP, too_long=2 * BUDGET)
        yield Stack("SearXNG", service, way, ASKED, "from 1887 to 1889", spared=WHO)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_searxng(stack: Stack, fault: str) -> None:
    stack.withstands(fault)
