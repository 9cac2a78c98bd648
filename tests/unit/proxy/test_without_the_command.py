"""Evidence without the command: by header, by the model's name and by the workspace's setting, and who wins."""

import asyncio
import json
from typing import Any

import pytest
from proxy_stub import Proxied

from cragside.entrypoints.proxy import messages as request_body

ALWAYS, NEVER = (b"X-RAG: Always",), (b"X-RAG: never",)
BODIES = {
    "/api/chat": {"messages": [{"role": "user", "content": "why?"}]},
    "/api/generate": {"prompt": "why?"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "why?"}]},
    "/v1/completions": {"prompt": "why?"},
    "/v1/responses": {"input": "why?"},
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "why?"}]},
}


def sent(proxied: Proxied) -> Any:
    return json.loads(proxied.ollama.requests[-1].body)


@pytest.mark.parametrize("path", BODIES)
async def test_each_way_gives_evidence_on_each_route(start: Any, path: str) -> None:
    proxied = await start(prompts={"eager": "always"})
    await proxied.post(path, {"model": "m", **BODIES[path]}, ALWAYS)
    await proxied.post(path, {"model": "m:7b+rag", **BODIES[path]})
    assert sent(proxied)["model"] == "m:7b"
    await proxied.post(path, {"model": "m", **BODIES[path], "workspace": "eager"})
    await proxied.post(path, {"model": "m", **BODIES[path]}, (b"X-RAG-Workspace: eager",))
    assert len(proxied.enricher.calls) == 4
    for request in proxied.ollama.requests:
        assert b"[1] a passage" in request.body
        assert request.header(b"x-rag") == []


@pytest.mark.parametrize("path", BODIES)
async def test_without_the_command_the_model_is_told_nothing_where_there_is_no_evidence(start: Any, path: str) -> None:
    proxied = await start(prompts={"eager": "always"})
    proxied.enricher.documents = 0
    for body, headers in (
        ({"model": "m", **BODIES[path]}, ALWAYS),
        ({"model": "m+rag", **BODIES[path]}, ()),
        ({"model": "m", **BODIES[path], "workspace": "eager"}, ()),
    ):
        await proxied.post(path, body, headers)
        forwarded = sent(proxied)
        assert {name: forwarded[name] for name in BODIES[path]} == BODIES[path]


@pytest.mark.parametrize("prompts", ["command", "always", "never"])
@pytest.mark.parametrize("header", [(), ALWAYS, NEVER])
@pytest.mark.parametrize("suffix", ["", "+rag"])
@pytest.mark.parametrize("command", ["", "/rag "])
async def test_never_wins_and_otherwise_each_way_suffices(
    start: Any, prompts: str, header: tuple[bytes, ...], suffix: str, command: str
) -> None:
    proxied = await start(prompts={"default": prompts})
    body = {"model": f"m{suffix}", "prompt": f"{command}why?"}
    await proxied.post("/api/generate", body, header)
    never = header == NEVER or prompts == "never"
    asked = bool(command or suffix or header == ALWAYS or prompts == "always")
    assert len(proxied.enricher.calls) == int(asked and not never)
    if never or not asked:
        assert sent(proxied) == {**body, "model": "m"}


async def test_a_header_of_another_value_is_refused(proxied: Proxied) -> None:
    reply = await proxied.post("/v1/messages", {"model": "m", **BODIES["/v1/messages"]}, (b"X-RAG: maybe",))
    assert (reply.status, reply.json["error"]["message"]) == (400, "X-RAG must be always or never.")
    assert proxied.ollama.requests == []


RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "42"}]}
USER = {"role": "user", "content": "why?"}


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("/api/chat", {"messages": [USER, {"role": "assistant", "content": ""}, {"role": "tool", "content": "42"}]}),
        ("/v1/messages", {"max_tokens": 9, "messages": [USER, {"role": "assistant", "content": "x"}, RESULT]}),
        ("/v1/responses", {"input": [USER, {"type": "function_call_output", "call_id": "c", "output": "42"}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "### Task:\nGenerate a concise title"}]}),
        ("/api/chat", {"messages": []}),
        ("/api/generate", {"prompt": ""}),
        ("/api/generate", {"prompt": "def f(", "suffix": "return"}),
        ("/api/generate", {"prompt": "[INST] why? [/INST]", "raw": True}),
        ("/api/generate", {"prompt": "x" * 32_001}),
        ("/api/generate", {"prompt": "why?", "stream": "yes"}),
        ("/api/embed", {"input": "why?"}),
        ("/v1/embeddings", {"input": "why?"}),
    ],
)
async def test_a_workspace_that_always_asks_leaves_other_requests_as_they_are(
    start: Any, path: str, payload: dict[str, Any]
) -> None:
    proxied = await start(prompts={"default": "always"})
    body = json.dumps({"model": "m", **payload}, indent=1).encode()
    await proxied.ask(f"POST {path}", body)
    assert proxied.ollama.requests[0].body == body
    assert proxied.enricher.calls == []


TOOLS = {
    "/api/chat": {"messages": [USER, {"role": "assistant", "content": ""}, {"role": "tool", "content": "42"}]},
    "/v1/chat/completions": {
        "messages": [USER, {"role": "assistant", "content": ""}, {"role": "tool", "tool_call_id": "t", "content": "42"}]
    },
    "/v1/messages": {"max_tokens": 9, "messages": [USER, {"role": "assistant", "content": "x"}, RESULT]},
    "/v1/responses": {"input": [USER, {"type": "function_call_output", "call_id": "c", "output": "42"}]},
}


@pytest.mark.parametrize(("model", "headers"), [("m", ALWAYS), ("m+rag", ())])
@pytest.mark.parametrize("path", TOOLS)
async def test_header_and_suffix_give_evidence_after_the_result_of_a_tool_too(
    proxied: Proxied, path: str, model: str, headers: tuple[bytes, ...]
) -> None:
    reply = await proxied.post(path, {"model": model, **TOOLS[path]}, headers)
    assert reply.header(b"x-rag-verdict") == [b"local"]
    assert b"[1] a passage" in proxied.ollama.requests[-1].body
    assert b"42" in proxied.ollama.requests[-1].body


TASK = "Provide a concise, 5-word-or-less title for the conversation.\n\nConversation:\nUser: why?\nAI: so."
SETS_A_TASK = {"role": "system", "content": "You are a chat summarizer. Generate a title for the conversation."}
TALKED = [{"role": "assistant", "content": "so."}, {"role": "user", "content": "and how?"}]


@pytest.mark.parametrize("headers", [ALWAYS, ()])
@pytest.mark.parametrize(
    "payload",
    [
        {"messages": [{"role": "user", "content": TASK}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": TASK}]}]},
        {"messages": [USER, TALKED[0], {"role": "user", "content": TASK}]},
        {"messages": [SETS_A_TASK, {"role": "user", "content": "user: why?\nassistant: so."}]},
        {"messages": [USER], "metadata": {"task": "title_generation"}},
    ],
)
async def test_a_clients_task_gets_no_evidence_and_is_not_remembered(
    start: Any, headers: tuple[bytes, ...], payload: dict[str, Any]
) -> None:
    proxied = await start(prompts={"default": "always"}, store_exchanges=True)
    proxied.ollama.answer = http(b'{"message": {"content": "Why"}, "done": true}')
    await proxied.post("/api/chat", {"model": "m", **payload}, headers)
    await proxied.post("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "/rag " + TASK}]})
    async with asyncio.timeout(5):
        await proxied.memory.news.wait()
    assert len(proxied.enricher.calls) == len(proxied.memory.exchanges) == 1, "the command is typed by a person"


async def test_a_system_message_that_speaks_of_titles_does_not_stop_a_chat(proxied: Proxied) -> None:
    messages = [SETS_A_TASK, USER, *TALKED]
    await proxied.post("/api/chat", {"model": "m", "messages": messages}, ALWAYS)
    assert len(proxied.enricher.calls) == 1


async def test_a_setting_refuses_nobody(start: Any) -> None:
    proxied = await start(prompts={"default": "always"}, workspace_tokens='{"secret": ["mine"]}')
    token = b"Authorization: Bearer secret"
    body = {"model": "m", **BODIES["/api/chat"]}
    for headers in ((token, b"X-RAG-Workspace: other"), (token, b"Origin: https://evil.example")):
        assert (await proxied.post("/api/chat", body, headers)).status == 200
        assert sent(proxied) == body


async def test_settings_that_cannot_be_read_delay_one_prompt_and_no_other(start: Any) -> None:
    proxied = await start()
    proxied.container.preferences.outage = "No answer."
    for _ in range(3):
        await proxied.post("/api/chat", {"model": "m", **BODIES["/api/chat"]})
    assert proxied.container.preferences.waits == [0.5, 0.0, 0.0]


@pytest.mark.parametrize("path", ["/api/show", "/api/embed", "/api/embeddings", "/v1/embeddings"])
async def test_the_suffix_is_removed_where_there_is_no_prompt(proxied: Proxied, path: str) -> None:
    await proxied.ask(f"POST {path}", rb'{"model": "m:7b\u002Brag", "input": "+rag"}')
    assert sent(proxied) == {"model": "m:7b", "input": "+rag"}
    body = b'{"model":  "m", "input": "a+rag"}'
    await proxied.ask(f"POST {path}", body)
    assert proxied.ollama.requests[-1].body == body
    for name in (b"m:7b+rag", b"m:7b%2Brag"):
        await proxied.ask(f"GET /v1/models/{name.decode()}")
        assert proxied.ollama.requests[-1].line == b"GET /v1/models/m:7b HTTP/1.1"


@pytest.mark.attack("exhausted resources")
@pytest.mark.parametrize("path", ["/api/show", "/api/chat"])
@pytest.mark.parametrize("hint", ['"model": "m+rag"', '"model": "m", "workspace": "default"'])
async def test_hints_do_not_make_the_proxy_parse_a_million_values(
    start: Any, monkeypatch: pytest.MonkeyPatch, path: str, hint: str
) -> None:
    proxied = await start(prompts={"default": "always"})
    body = f'{{{hint}, "messages": [{{"role": "user", "content": "why?"}}], "x": [{"[]," * 250_000}0]}}'.encode()
    parsed: list[int] = []
    loads = json.loads
    monkeypatch.setattr(request_body.json, "loads", lambda s, **how: parsed.append(len(s)) or loads(s, **how))
    await proxied.ask(f"POST {path}", body)
    assert proxied.ollama.requests[0].body == body
    assert parsed == []


@pytest.mark.parametrize("name", ['"workspace"', r'"\u0077orkspace"', r'"workspac\u0065"'])
async def test_the_setting_is_that_of_the_workspace_however_it_is_written(start: Any, name: str) -> None:
    proxied = await start(prompts={"default": "always", "quiet": "never"})
    await proxied.ask("POST /api/generate", f'{{"model": "m", "prompt": "why?", {name}: "quiet"}}'.encode())
    assert proxied.enricher.calls == []


TAGS = {"models": [{"name": "m:7b", "model": "m:7b", "size": 1}], "more": 1}
MODELS = {"object": "list", "data": [{"id": "m:7b", "object": "model"}]}


def http(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def test_models_are_listed_with_the_suffix_by_setting(start: Any) -> None:
    proxied = await start(list_rag_models=True)
    proxied.ollama.answer = http(json.dumps(TAGS).encode())
    reply = await proxied.ask("GET /api/tags")
    assert reply.json == {**TAGS, "models": [*TAGS["models"], {"name": "m:7b+rag", "model": "m:7b+rag", "size": 1}]}
    assert reply.header(b"content-length") == [b"%d" % len(reply.body)]
    proxied.ollama.answer = http(json.dumps(MODELS).encode())
    listed = (await proxied.ask("GET /v1/models")).json["data"]
    assert [each["id"] for each in listed] == ["m:7b", "m:7b+rag"]


@pytest.mark.parametrize(
    ("setting", "answer"),
    [(False, http(json.dumps(TAGS).encode())), (True, http(b"nonsense")), (True, http(b"{}", "500 Oh"))],
)
async def test_other_lists_are_not_touched(start: Any, setting: bool, answer: bytes) -> None:
    proxied = await start(list_rag_models=setting)
    proxied.ollama.answer = answer
    reply = await proxied.ask("GET /api/tags")
    assert reply.body == answer.partition(b"\r\n\r\n")[2]


async def test_a_list_that_breaks_off_is_no_list(start: Any) -> None:
    proxied = await start(list_rag_models=True)

    async def cut(_: Any, writer: Any) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"models": [')
        await writer.drain()
        writer.close()

    proxied.ollama.answer = cut
    assert (await proxied.ask("GET /api/tags")).status == 502
