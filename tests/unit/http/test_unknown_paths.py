"""Unknown paths below our own are 404 in our own shape, with and without an Ollama."""

import json
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI

from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.keyring import Keys
from cragside.entrypoints.proxy.app import create_proxy
from cragside.entrypoints.proxy.own_paths import is_own
from tests.unit.http.test_http_app import container

ENVELOPE = [
    "/v1/documents/x/y",
    "/v1/documents/",
    "/v1/documents//",
    "/v1/documents/x/content/",
    "/v1/memories/x/y",
    "/v1/settings/x",
    "/v1/settings/",
    "/v1/queue",
    "/v1/queue/x",
    "/v1/enrich/",
    "/v1/enrich/x",
    "/healthz/",
    "/health/x",
    "/openapi.json/x",
    "/V1/Documents",
    "//v1/documents",
    "/v1//documents",
    "/v1/./documents",
    "/x/../v1/documents",
    "/v1/documents/../models",
    "/v1%252Fdocuments",
    "/v1%5Cdocuments",
    "/v1/docum%2565nts",
]
PEERS = {
    "/ingest/x": "error",
    "/enrichment/x/y": "error",
    "/graph/x": "error",
    "/query/x/y": "error",
    "/documents/x": "detail",
}
OLLAMAS = [
    "/v1/models",
    "/v1/models/x",
    "/v1/chat/completions",
    "/v1/enrichx",
    "/v1/enrichment",
    "/v1/documentsx",
    "/v1",
    "/v1/",
    "/",
    "",
    "/api/tags",
    "/api/../api/tags",
    "/healthzz",
    "/queryx",
    "*",
]


def proxied() -> httpx.AsyncClient:
    built = container(ollama_base_url="http://127.0.0.1:9")
    app: FastAPI = create_app(built)
    proxy = create_proxy(built, app, keys=Keys(built))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=proxy), base_url="http://127.0.0.1")


async def got(path: str) -> tuple[int, Any]:
    """The answer to a path that comes as it is written; clients would make it plain."""
    built = container(ollama_base_url="http://127.0.0.1:9")
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    named = {"path": unquote(path), "raw_path": path.encode(), "root_path": "", "query_string": b""}
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "headers": [], **named}
    await create_proxy(built, create_app(built), keys=Keys(built))(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize("path", ENVELOPE)
async def test_they_are_404_in_the_envelope(path: str) -> None:
    status, body = await got(path)
    assert (status, body["error"]["type"]) == (404, "not_found")


@pytest.mark.parametrize(("path", "field"), PEERS.items())
async def test_they_are_404_in_the_shape_of_the_peer(path: str, field: str) -> None:
    async with proxied() as http:
        answer = await http.get(path)
    assert answer.status_code == 404
    assert answer.json()[field]


@pytest.mark.parametrize("path", OLLAMAS)
def test_paths_that_only_start_like_ours_belong_to_ollama(path: str) -> None:
    assert not is_own(path)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/documents", {"GET", "POST"}),
        ("POST", "/v1/documents/x", {"GET", "DELETE", "PATCH"}),
        ("DELETE", "/v1/settings", {"GET", "PATCH"}),
        ("GET", "/v1/enrich", {"POST"}),
        ("GET", "/ingest", {"POST"}),
        ("OPTIONS", "/v1/documents", {"GET", "POST"}),
    ],
)
async def test_the_error_for_a_wrong_method_lists_all_right_ones(method: str, path: str, allowed: set[str]) -> None:
    async with proxied() as http:
        answer = await http.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed
