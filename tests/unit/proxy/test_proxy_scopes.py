"""Every route of Ollama's is tried with a token of every single scope, and in spellings that Ollama might resolve."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime

import pytest

from cragside.application import allowance
from cragside.domain.tokens import SCOPES, IssuedToken, Limits
from cragside.entrypoints.proxy.routes import scopes_of

QUESTION = {"model": "m", "prompt": "/rag who?", "messages": [{"role": "user", "content": "/rag who?"}]}
INFERENCE = [
    f"POST {path}"
    for path in (
        *("/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/v1/chat/completions", "/v1/completions"),
        *("/v1/embeddings", "/v1/responses", "/v1/messages"),
    )
]
READING = [
    *("GET /", "HEAD /", "GET /api/tags", "HEAD /api/tags", "GET /api/ps", "GET /api/version", "POST /api/show"),
    *("GET /v1/models", "GET /v1/models/qwen2.5:7b"),
]
CHANGING = [
    *("POST /api/pull", "POST /api/push", "POST /api/create", "POST /api/copy", "DELETE /api/delete"),
    *("POST /api/blobs/sha256:0", "HEAD /api/blobs/sha256:0", "POST /api/stop", "GET /unknown", "POST /v1/unknown"),
    *("PUT /api/chat", "DELETE /api/chat", "GET /api/chat", "DELETE /v1/models/x", "POST /v1/models", "POST /"),
    *("DELETE /api/tags", "GET /v1/models/", "POST /v1/files", "POST /api/me", "POST /api/signout"),
    *("GET /v1/models/..", "HEAD /v1/models/."),
]
NEEDED = {
    **{key: {"chat"} for key in INFERENCE},
    **{key: {"chat", "models"} for key in READING},
    **{key: {"models"} for key in CHANGING},
}
TRICKS = [
    *("//api/delete", "/api//delete", "/api/./delete", "/api/chat/../delete", "/api/%64elete", "/api/%2e/delete"),
    *("/API/delete", "/api/DELETE", "/api/delete/", "/api/chat/", "/api/chat%2f..%2fdelete", "/api/chat;/delete"),
    *("/api/chat%00", "/api/chat%20", "/api/%2563hat", "/api/chat%3f", "/v1/models/..%2f..%2fapi%2fdelete"),
    *("/api/chat%0a", "/v1/models/%2e%2e/x", "/./api/chat", "/api\\delete", "/api/tags/", "/api/delete#/api/chat"),
]


def issued(scope, token="token", workspaces=None, **more):
    scopes = frozenset({scope} if isinstance(scope, str) else scope)
    digest = hashlib.sha256(token.encode()).digest()
    return IssuedToken(f"id-{token}", token, digest, scopes, workspaces, datetime.now(UTC), **more)


async def started(start, *tokens, **settings):
    return await start(api_token="another", issued=tokens, **settings)


KEY = (b"X-API-Key: token",)


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("scope", SCOPES)
async def test_a_scope_opens_only_its_routes(start, scope):
    proxied = await started(start, issued(scope))
    for line, needed in NEEDED.items():
        proxied.ollama.requests.clear()
        reply = await proxied.ask(line, None if line.startswith(("GET", "HEAD")) else b"{}", KEY)
        assert (reply.status == 200) == (scope in needed), line
        assert bool(proxied.ollama.requests) == (scope in needed), line
        if scope not in needed:
            assert reply.status == 403, line
            if not line.startswith("HEAD"):
                assert "scope" in json.dumps(reply.json)
                assert "models" in reply.body.decode() or "chat" in reply.body.decode()


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("path", TRICKS)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_no_way_of_writing_a_path_gets_past_the_scope(start, method, path):
    proxied = await started(start, issued({"read", "write", "chat"}))
    reply = await proxied.raw(
        b"%b %b HTTP/1.1\r\nHost: localhost\r\nX-API-Key: token\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
        % (method.encode(), path.encode())
    )
    assert reply.split(b" ")[1] in (b"403", b"400")
    assert proxied.ollama.requests == []


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("line", CHANGING)
async def test_a_token_of_one_workspace_changes_no_models(start, line):
    proxied = await start(workspace_tokens='{"a-key": ["a"]}')
    assert (await proxied.ask(line, b"{}", (b"X-API-Key: a-key",))).status == 403
    assert proxied.ollama.requests == []
    assert (await proxied.post("/api/chat", QUESTION, (b"X-API-Key: a-key",))).status == 200


@pytest.mark.parametrize("line", [*INFERENCE, *READING, *CHANGING])
async def test_the_token_of_the_environment_opens_everything(start, line):
    proxied = await start(api_token="s3cret")
    assert (await proxied.ask(line, None, (b"X-API-Key: s3cret",))).status == 200


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/v1/chat/completions"])
async def test_the_command_needs_the_scope_that_reads(start, path):
    proxied = await started(start, issued("chat"), issued({"chat", "read"}, "reader"))
    reply = await proxied.post(path, QUESTION, KEY)
    assert (reply.status, "read" in reply.body.decode()) == (403, True)
    assert proxied.ollama.requests == proxied.enricher.calls == []
    plain = {"model": "m", "prompt": "who?", "messages": [{"role": "user", "content": "who?"}]}
    assert (await proxied.post(path, plain, KEY)).status == 200
    assert (await proxied.post(path, QUESTION, (b"X-API-Key: reader",))).status == 200


@pytest.mark.attack("hostile tokens")
async def test_two_tokens_do_not_lend_each_other_scopes(start):
    """One reads workspace a, the other chats in b: together they do not read b."""
    chatting = issued("chat", "chatter", ("b",))
    proxied = await started(start, issued({"read", "chat"}, workspaces=("a",)), chatting)
    both = (*KEY, b"Authorization: Bearer chatter")
    assert (await proxied.post("/api/chat", {**QUESTION, "workspace": "b"}, both)).status == 401
    assert proxied.enricher.calls == proxied.ollama.requests == []
    assert (await proxied.post("/api/chat", {**QUESTION, "workspace": "a"}, both)).status == 200
    assert proxied.ollama.requests[0].header(b"authorization") == []
    assert proxied.ollama.requests[0].header(b"x-api-key") == []


@pytest.mark.attack("hostile tokens")
async def test_an_exchange_of_a_token_that_may_not_write_is_not_stored(start):
    proxied = await started(
        start, issued({"chat"}), issued({"chat", "write"}, "writer", workspaces=("w",)), store_exchanges=True
    )
    body = b'{"message":{"content":"Otters hold hands while they sleep."},"done":true}'
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    asked = {"model": "m", "messages": [{"role": "user", "content": "What do otters do while they sleep?"}]}
    assert (await proxied.post("/api/chat", asked, KEY)).status == 200
    assert (await proxied.post("/api/chat", asked, (b"X-API-Key: writer",))).status == 200
    async with asyncio.timeout(5):
        await proxied.memory.news.wait()
    assert [workspace for workspace, _ in proxied.memory.exchanges] == ["w"]


@pytest.mark.attack("hostile tokens")
async def test_an_exchange_counts_towards_the_limits_of_its_token(start):
    limited = issued({"chat", "write"}, workspaces=("w",), limits=Limits(documents=7))
    proxied = await started(start, limited, store_exchanges=True)
    seen = []

    async def note():
        seen.append(allowance._current.get())

    proxied.memory.before = note
    body = b'{"message":{"content":"Otters hold hands while they sleep."},"done":true}'
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    asked = {"model": "m", "messages": [{"role": "user", "content": "What do otters do while they sleep?"}]}
    assert (await proxied.post("/api/chat", asked, KEY)).status == 200
    async with asyncio.timeout(5):
        await proxied.memory.news.wait()
    assert seen == [allowance.Allowance("id-token", Limits(documents=7), ("w",))]


@pytest.mark.attack("hostile tokens")
async def test_a_revoked_token_is_not_forwarded_with_a_valid_one(start):
    proxied = await started(start, issued("chat", "crag_valid"))
    headers = (b"X-API-Key: crag_valid", b"Authorization: Bearer crag_revoked")
    assert (await proxied.ask("GET /api/tags", None, headers)).status == 200
    assert b"crag_" not in proxied.ollama.requests[0].head


def test_unknown_routes_of_ollama_need_the_scope_models():
    assert scopes_of("POST", "/api/anything") == ("models",)
    assert scopes_of("OPTIONS", "/api/chat") == ("models",)
