import json

import pytest

TOKENS = json.dumps({"a-key": ["a"], "both-key": ["a", "b"]})
ASKED = {"model": "m", "prompt": "/rag who?", "messages": [{"role": "user", "content": "/rag who?"}]}
PATHS = ("/api/generate", "/api/chat", "/v1/chat/completions")


@pytest.mark.parametrize("path", PATHS)
async def test_a_bound_token_asks_its_own_workspace(start, path):
    proxied = await start(workspace_tokens=TOKENS)
    reply = await proxied.post(path, ASKED, (b"X-API-Key: a-key",))
    assert reply.status == 200
    assert [call["workspace"] for call in proxied.enricher.calls] == ["a"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("header", [b"X-RAG-Workspace: b", b"LIGHTRAG-WORKSPACE: b", None])
async def test_a_bound_token_reaches_no_other_workspace(start, path, header):
    proxied = await start(workspace_tokens=TOKENS)
    asked = ASKED if header else {**ASKED, "workspace": "b"}
    reply = await proxied.post(path, asked, (b"Authorization: Bearer a-key", *([header] if header else [])))
    assert reply.status == 401
    assert proxied.enricher.calls == proxied.ollama.requests == []


async def test_a_token_of_several_workspaces_names_one(start):
    proxied = await start(workspace_tokens=TOKENS)
    assert (await proxied.post("/api/chat", ASKED, (b"X-API-Key: both-key",))).status == 401
    named = (b"X-API-Key: both-key", b"LIGHTRAG-WORKSPACE: b")
    assert (await proxied.post("/api/chat", ASKED, named)).status == 200
    assert [call["workspace"] for call in proxied.enricher.calls] == ["b"]
    assert proxied.ollama.requests[0].header(b"lightrag-workspace") == []
    assert proxied.ollama.requests[0].header(b"x-api-key") == []


@pytest.mark.parametrize("line", ["GET /api/tags", "GET /v1/documents", "GET /v1/settings", "GET /v1/queue/dead"])
async def test_with_only_bound_tokens_a_token_is_required(start, line):
    proxied = await start(workspace_tokens=TOKENS)
    assert (await proxied.ask(line)).status == 401
    assert (await proxied.ask("GET /healthz")).status == 200
    assert proxied.ollama.requests == []


OWN = ("/v1/documents", "/v1/documents/x", "/v1/memories/search", "/v1/settings", "/v1/queue/dead")


@pytest.mark.parametrize("path", OWN)
async def test_own_routes_do_not_reach_ollama(start, path):
    proxied = await start()
    assert (await proxied.ask(f"GET {path}")).status == 404
    assert proxied.ollama.requests == []


async def test_names_that_only_begin_alike_are_ollamas(start):
    proxied = await start()
    assert (await proxied.ask("GET /v1/documentsandmore")).status == 200
    assert len(proxied.ollama.requests) == 1
