"""Foreign pages spend no credential that cragside adds to requests: a host's key, or the password in its address."""

import json
from typing import Any

import pytest
from proxy_stub import Proxied, Reply
from pydantic import SecretStr

LISTED = "https://app.example"
CREDENTIALS: dict[str, tuple[dict[str, Any], bytes]] = {
    "key": (
        {"model_host": "openai+http://127.0.0.1:{port}/v1", "openai_api_key": SecretStr("sk-hush")},
        b"Bearer sk-hush",
    ),
    "key of Ollama": (
        {"base": "http://a:b@127.0.0.1:{port}", "ollama_api_key": SecretStr("sk-hush")},
        b"Bearer sk-hush",
    ),
    "password": ({"base": "http://a:b@127.0.0.1:{port}"}, b"Basic YTpi"),
}
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
REQUESTS = [
    ("POST /v1/chat/completions", CHAT),
    ("POST /v1/messages", CHAT),
    ("POST /v1/responses", b'{"model": "m", "input": "hi"}'),
    ("POST /api/chat", CHAT),
    ("POST /api/chat", b"no JSON"),
    ("POST /api/show", b'{"model": "m"}'),
    ("POST /v1/embeddings", b'{"model": "m", "input": "hi"}'),
    ("POST /v1/files", b"a file"),
    ("GET /v1/models", None),
    ("GET /api/tags", None),
    ("HEAD /v1/models", None),
    ("GET /unknown", None),
    ("PUT /v1/files/file-1", b"{}"),
    ("PATCH /v1/files/file-1", b"{}"),
    ("DELETE /v1/files/file-1", None),
    ("DELETE /api/delete", b'{"model": "m"}'),
    ("OPTIONS /v1/models", None),
]
FOREIGN: dict[str, tuple[bytes, ...]] = {
    "foreign": (b"Origin: https://evil.example",),
    "null": (b"Origin: null",),
    "empty": (b"Origin: ",),
    "a name like a listed one": (b"Origin: https://app.example.evil.example",),
    "a subdomain of a listed one": (b"Origin: https://sub.app.example",),
    "another port of a listed one": (b"Origin: https://app.example:8443",),
    "another scheme of a listed one": (b"Origin: http://app.example",),
    "a name like this machine's": (b"Origin: http://localhost.evil.example",),
    "an extension": (b"Origin: chrome-extension://abc",),
    "two origins": (b"Origin: https://app.example", b"Origin: https://evil.example"),
    "a picture": (b"Sec-Fetch-Site: cross-site",),
}
ACCEPTED: dict[str, tuple[bytes, ...]] = {
    "a program": (),
    "a listed page": (b"Origin: https://app.example", b"Sec-Fetch-Site: cross-site"),
    "a page of this machine": (b"Origin: http://localhost:3000", b"Sec-Fetch-Site: same-site"),
    "an application": (b"Origin: tauri://localhost",),
    "an address that the user typed": (b"Sec-Fetch-Site: none",),
}


@pytest.fixture(params=CREDENTIALS)
async def guarded(request: Any, start: Any) -> tuple[Proxied, bytes]:
    """A proxy before a host that needs a credential, and the credential."""
    settings, credential = CREDENTIALS[request.param]
    return await start(allow_origins=LISTED, **settings), credential


def origin_of(headers: tuple[bytes, ...]) -> list[bytes]:
    return [header.partition(b": ")[2] for header in headers if header.startswith(b"Origin")]


async def preflight(proxied: Proxied, headers: tuple[bytes, ...], method: bytes = b"DELETE") -> Reply:
    asked = b"Access-Control-Request-Method: " + method
    return await proxied.ask("OPTIONS /v1/files/file-1", None, (*headers, asked))


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("sender", FOREIGN)
async def test_a_foreign_page_gets_nothing_forwarded(guarded: tuple[Proxied, bytes], sender: str) -> None:
    proxied, _ = guarded
    for line, body in REQUESTS:
        reply = await proxied.ask(line, body, FOREIGN[sender])
        assert reply.status == 403, line
        assert not reply.header(b"access-control-allow-origin")
        assert line.startswith("HEAD") or b"RAG_ALLOW_ORIGINS" in reply.body
    assert proxied.ollama.connections == 0


@pytest.mark.attack("foreign origins")
@pytest.mark.parametrize("sender", [name for name in FOREIGN if origin_of(FOREIGN[name])])
async def test_a_preflight_of_a_foreign_page_is_refused_here(guarded: tuple[Proxied, bytes], sender: str) -> None:
    proxied, _ = guarded
    assert (await preflight(proxied, FOREIGN[sender])).status == 403
    assert proxied.ollama.connections == 0


@pytest.mark.parametrize("sender", ACCEPTED)
async def test_a_page_that_may_ask_has_the_credential_and_reads_the_answer(
    guarded: tuple[Proxied, bytes], sender: str
) -> None:
    proxied, credential = guarded
    for line, body in REQUESTS:
        proxied.ollama.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
        reply = await proxied.ask(line, body, ACCEPTED[sender])
        assert reply.status == 204, line
        assert reply.header(b"access-control-allow-origin") == origin_of(ACCEPTED[sender])
        assert proxied.ollama.requests[-1].header(b"authorization") == [credential]
    assert len(proxied.ollama.requests) == len(REQUESTS)


@pytest.mark.parametrize("sender", [name for name in ACCEPTED if origin_of(ACCEPTED[name])])
async def test_a_preflight_of_an_accepted_page_is_answered_here(guarded: tuple[Proxied, bytes], sender: str) -> None:
    proxied, _ = guarded
    reply = await preflight(proxied, ACCEPTED[sender])
    assert reply.status == 204
    assert reply.header(b"access-control-allow-origin") == origin_of(ACCEPTED[sender])
    assert proxied.ollama.connections == 0


@pytest.mark.attack("foreign origins")
async def test_a_token_that_a_foreign_page_learnt_does_not_open_the_credential(start: Any) -> None:
    proxied = await start(api_token="s3cret", **CREDENTIALS["key"][0])
    evil = (b"Origin: https://evil.example", b"Authorization: Bearer s3cret")
    assert (await proxied.ask("GET /v1/models", None, evil)).status == 403
    assert proxied.ollama.connections == 0


@pytest.mark.attack("foreign origins")
async def test_a_listed_null_is_accepted_and_another_is_not(start: Any) -> None:
    proxied = await start(allow_origins="null", **CREDENTIALS["key"][0])
    assert (await proxied.ask("GET /v1/models", None, (b"Origin: null",))).status == 200
    assert (await proxied.ask("GET /v1/models", None, (b"Origin: NULL",))).status == 403
    assert len(proxied.ollama.requests) == 1


async def test_without_a_credential_the_host_judges_pages(start: Any) -> None:
    proxied = await start(model_host="openai+http://127.0.0.1:{port}/v1")
    assert (await proxied.ask("GET /v1/models", None, (b"Origin: https://evil.example",))).status == 200
    assert proxied.ollama.requests[0].header(b"authorization") == []
