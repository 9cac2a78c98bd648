"""Every route of our own is tried with a token of every single scope."""

import hashlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from pydantic import SecretStr

from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.tokens import SCOPES, IssuedToken, TokenScope
from cragside.entrypoints.access import Keyring
from cragside.entrypoints.http.app import create_app
from cragside.entrypoints.http.request_access import check_rules
from cragside.settings import Settings

READING = {
    *("GET /health", "GET /openapi.json", "POST /v1/enrich", "POST /v1/memories/search", "POST /query"),
    "POST /v1/explain",
    "POST /v1/citations",
    "POST /v1/query",
    *("POST /query/data", "GET /v1/documents", "GET /v1/documents/{document_id}", "GET /v1/settings"),
    *("GET /v1/documents/{document_id}/content", "GET /v1/documents/{document_id}/events", "GET /v1/queue/dead"),
    *("GET /enrichment/status/{baseId}", "GET /enrichment/stats", "GET /graph/entity/{name}"),
    "GET /v1/memories",
    *("GET /v1/graph", "GET /v1/graph/search", "GET /v1/graph/neighbourhood", "GET /v1/graph/passages"),
    *("GET /v1/workspaces", "GET /v1/samples", "GET /v1/components"),
    "GET /metrics",
    *("GET /documents/track_status/{track_id}", "GET /documents/status_counts", "GET /documents/pipeline_status"),
}


def issued(scope: TokenScope, **more: Any) -> IssuedToken:
    digest = hashlib.sha256(f"{scope}-token".encode()).digest()
    return IssuedToken("1", scope, digest, frozenset({scope}), None, datetime.now(UTC), **more)


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    built = Container(Settings(home=tmp_path, api_token=SecretStr("all")))  # type: ignore[call-arg]
    tokens = tuple(issued(scope) for scope in SCOPES)
    type(built).issued_tokens, before = lambda _: tokens, type(built).issued_tokens  # type: ignore[method-assign,assignment]
    app = create_app(built)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client
    type(built).issued_tokens = before  # type: ignore[method-assign]
    await built.close()


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("scope", [*SCOPES, "all"])
async def test_a_scope_opens_only_its_routes(http: httpx.AsyncClient, scope: str) -> None:
    key = {"X-API-Key": scope if scope == "all" else f"{scope}-token"}
    document = (await http.get("/openapi.json", headers={"X-API-Key": "all"})).json()
    routes = [f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods]
    assert len(routes) >= 28
    for route in [*routes, "GET /openapi.json"]:
        method, path = route.split(" ")
        if path in ("/healthz", "/ready"):
            continue
        needed = "read" if route in READING else "write"
        answer = await http.request(method, path, headers=key, json={})
        assert (answer.status_code != 403) == (scope in (needed, "all")), (route, answer.text)
        if answer.status_code == 403:
            assert f"scope {needed}" in answer.text


@pytest.mark.attack("hostile tokens")
async def test_the_refusal_names_the_scope_in_the_envelope(http: httpx.AsyncClient) -> None:
    error = (await http.delete("/v1/documents/x", headers={"X-API-Key": "read-token"})).json()["error"]
    assert (error["type"], error["details"], error["retryable"]) == ("forbidden", {"scope": "write"}, False)
    assert "cragside token new" in error["message"]


def test_a_route_without_a_rule_keeps_the_application_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = APIRouter(prefix="/v1")

    @routes.post("/new")
    async def new() -> None:
        """A route that somebody adds."""

    with pytest.raises(KeyError, match="POST /v1/new"):
        check_rules(routes)


def grant(token: str, *tokens: IssuedToken, **more: Any) -> Any:
    keys: Sequence[IssuedToken] = tokens
    return Keyring((), {}, keys, asked=True, **more).grant([(b"x-api-key", token.encode())])


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("age", [timedelta(0), timedelta(seconds=1), timedelta(days=400)])
def test_an_expired_token_opens_nothing(age: timedelta) -> None:
    assert grant("read-token", issued("read", expires=datetime.now(UTC) - age)) is None
    assert grant("read-token", issued("read", expires=datetime.now(UTC) + timedelta(hours=1))) is not None


@pytest.mark.attack("hostile tokens")
def test_revoking_every_token_denies_all_requests() -> None:
    assert grant("read-token") is None
    assert Keyring((), {}, (), asked=True).grant([]) is None
    assert not Keyring((), {}, (), asked=True).empty


@pytest.mark.attack("hostile tokens")
def test_the_token_file_precedes_the_environment() -> None:
    token = IssuedToken(
        "1", "n", hashlib.sha256(b"t").digest(), frozenset({"read"}), ("a",), datetime.now(UTC), datetime.now(UTC)
    )
    assert Keyring(("t",), {"t": ["b"]}, (token,)).grant([(b"x-api-key", b"t")]) is None


@pytest.mark.attack("hostile tokens")
def test_during_an_outage_known_tokens_work_and_others_get_503() -> None:
    outage = ServiceUnavailable("secrets", "The token could not be read.")
    assert grant("read-token", issued("read"), outage=outage) is not None
    with pytest.raises(ServiceUnavailable):
        grant("another", issued("read"), outage=outage)
    assert Keyring((), {}, (), outage=outage).grant([]) is None


@pytest.mark.attack("hostile tokens")
def test_output_has_neither_tokens_nor_hashes() -> None:
    token = issued("read")
    shown = repr((token, grant("read-token", token), Keyring(("s3cret",), {"b0und": ["a"]}, (token,))))
    assert not any(
        secret in shown for secret in ("s3cret", "b0und", "read-token", token.digest.hex(), str(token.digest))
    )
