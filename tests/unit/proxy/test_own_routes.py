import json

import pytest

from cragside.entrypoints.proxy.errors import error_body
from cragside.entrypoints.proxy.routes import is_own
from tests.described import openapi


def test_every_route_of_the_application_is_its_own_under_the_proxy() -> None:
    paths = openapi()["paths"]
    assert {"/ingest", "/query", "/query/data", "/documents/text", "/graph/entity/{name}"} <= paths.keys()
    assert [path for path in paths if not is_own(path)] == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/chat",
        "/api/generate",
        "/api/tags",
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/models",
        "/v1/embeddings",
        "/v1/responses",
        "/v1/messages",
        "/",
        "/queries",
        "/ingestion",
    ],
)
def test_ollamas_routes_pass_through(path: str) -> None:
    assert not is_own(path)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/ingest", {"error"}),
        ("/enrichment/stats", {"error"}),
        ("/graph/entity/a", {"error"}),
        ("/query", {"error", "detail"}),
        ("/query/data", {"status", "message", "data", "metadata", "detail"}),
        ("/documents/text", {"detail"}),
        ("/v1/enrich", {"error", "id", "timestamp"}),
    ],
)
def test_a_refusal_has_the_shape_of_its_route(path: str, fields: set[str]) -> None:
    body = error_body(path, "unauthorized", "Send the token.")
    assert body.keys() == fields
    assert "Send the token." in json.dumps(body)
