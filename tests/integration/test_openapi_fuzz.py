"""schemathesis over the whole OpenAPI document, embedded default: no 5xx, no answer that breaks its schema."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from schemathesis import checks

from cragside.bootstrap import Container
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.proxy.server import listen
from cragside.settings import Settings
from tests.described import openapi
from tests.fakes import FolderUploadStore

pytestmark = pytest.mark.slow

EXAMPLES = 10
LEASE_SECONDS = 30
KEY = {"Authorization": "Bearer s3cret"}
# Not whether what fits the schema is taken: some rules, such as "either text or url", are beyond it.
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.ignored_auth,
]
# Progress is told until the document is done; without a worker that is when the client leaves.
ENDLESS = "/v1/documents/{document_id}/events"
# OpenAPI 3.1 has no words for an event, so the document says `string`. schemathesis checks each event.
EVENT = {"type": "object", "required": ["event", "data"], "properties": {"event": {"type": "string"}}}


def schema() -> Any:
    document = openapi()
    for method in (method for path in document["paths"].values() for method in path.values()):
        for answer in method["responses"].values():
            if events := answer.get("content", {}).get("text/event-stream"):
                events["schema"] = EVENT
    return schemathesis.openapi.from_dict(document)


SCHEMA = schema()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the routes on loopback, and return their address."""
    home = tmp_path_factory.mktemp("home")
    configured = Settings(home=home, api_token=SecretStr("s3cret"))  # type: ignore[call-arg]
    built = Container(configured, upload_store=FolderUploadStore(home / ".uploads"))
    server = uvicorn.Server(uvicorn.Config(create_app(built), log_level="critical", lifespan="on"))

    async def serve() -> None:
        await server.serve(sockets=[listening])
        await built.close()

    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=lambda: asyncio.run(serve()))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_request_breaks_a_route_or_its_schema(operation: Any, address: str) -> None:
    @seed(20261122)
    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, derandomize=False, suppress_health_check=list(HealthCheck)
    )
    @given(data=st.data())
    def tried(data: st.DataObject) -> None:
        mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if operation.path == ENDLESS:
            case.path_parameters = {"document_id": "doc-nowhere"}
        sent = {"base_url": address, "headers": KEY, "timeout": 300}
        case.validate_response(_answer_to(case, sent), checks=CHECKS, headers=KEY, transport_kwargs=sent)

    tried()


def _answer_to(case: Any, sent: dict[str, Any]) -> Any:
    """The answer. A request that is refused because another one is under way is sent again, as the refusal advises.

    A lease that could not be returned on a busy disk is free again when it expires.
    """
    ends = time.monotonic() + 2 * LEASE_SECONDS
    while (answer := case.call(**sent)).status_code == 503 and time.monotonic() < ends:
        if answer.json()["error"]["details"].get("component") != "reindex":
            break
        time.sleep(0.2)
    return answer
