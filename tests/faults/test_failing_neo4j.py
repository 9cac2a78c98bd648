"""The database of the graph fails in each way."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from tests.faults.faults import Way
from tests.faults.matrix import DOCUMENT, FAULTS
from tests.faults.stack import SWAN, WHO, Stack, serving
from tests.faults.wrong_server import BOLT
from tests.services.backends import migrated

if TYPE_CHECKING:
    from tests.services.neo4j_server import Neo4j
    from tests.services.postgres import Postgres
    from tests.services.toxiproxy import Toxiproxy

# Of this time, two fifths have room for the three seconds that a question waits for the graph.
BUDGET = 15.0


def _the_graph_answers(http: httpx.Client) -> bool:
    """Return True if the answer has the document's statement about the person that it names."""
    return DOCUMENT in http.get("/graph/entity/Joseph Swan").text


@pytest.fixture(scope="module")
def stack(postgres: "Postgres", neo4j: "Neo4j", toxiproxy: "Toxiproxy") -> Iterator[Stack]:
    port = urlsplit(neo4j.uri).port or 0
    with migrated(postgres) as uri, toxiproxy.proxy(port) as proxy:
        through = neo4j.uri.replace(f":{port}", f":{proxy.port}")
        with serving(SWAN, POSTGRES_URI=uri, NEO4J_URI=through, RAG_TIMEOUT_SECONDS=str(BUDGET)) as service:
            way = Way(proxy, BOLT, too_long=BUDGET)
            yield Stack("Neo4j", service, way, WHO, DOCUMENT, brought=_the_graph_answers, budget=BUDGET)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_neo4j(stack: Stack, fault: str) -> None:
    stack.withstands(fault)
