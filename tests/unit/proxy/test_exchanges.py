"""Exchanges through the proxy that are put into memory, and all those that are not."""

import asyncio
import json
import logging

import pytest
from fastapi import FastAPI
from proxy_stub import OK, FakeMemory, faked, raw_post

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.entrypoints.access import Keys
from cragside.entrypoints.proxy import exchanges as module
from cragside.entrypoints.proxy.app import Proxy
from cragside.entrypoints.proxy.exchanges import Exchanges, answered_text
from cragside.entrypoints.proxy.messages import parsed
from cragside.entrypoints.proxy.prompts import user_prompt
from cragside.settings import Settings

CHAT = {"model": "m", "messages": [{"role": "user", "content": "earlier"}, {"role": "user", "content": "How deep?"}]}


def http(body: bytes, kind: str = "application/json", status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def ndjson(*parts: dict) -> bytes:
    return b"".join(json.dumps(part).encode() + b"\n" for part in parts)


def said(*pieces: str, done: bool = True) -> bytes:
    lines = [{"message": {"role": "assistant", "content": piece}, "done": False} for piece in pieces]
    return ndjson(*lines, *([{"message": {"content": ""}, "done": True, "done_reason": "stop"}] if done else []))


def sse(*pieces: str, end: bytes = b"data: [DONE]\n\n") -> bytes:
    def event(delta: dict) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"

    usage = b'data: {"choices": [], "usage": {}}\n\n'
    return b": hello\n\n" + b"".join(event({"content": piece}) for piece in pieces) + event({}) + usage + end


def events(*parts: dict) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(part).encode() + b"\n\n" for part in parts)


SAID = {"type": "message", "content": [{"type": "output_text", "text": "Very deep."}]}
COMPLETED = {"status": "completed", "error": None, "output": [{"type": "reasoning"}, SAID]}
STOPPED = {"type": "content_block_delta", "delta": {"text": "Very "}}


async def remembered(proxied) -> list[tuple[str, str, str]]:
    async with asyncio.timeout(5):
        await proxied.memory.news.wait()
    return [(workspace, exchange.user, exchange.assistant) for workspace, exchange in proxied.memory.exchanges]


async def assert_only_the_next_is_remembered(proxied) -> None:
    """Exchanges are remembered in their order: the next one would come after any of before."""
    proxied.ollama.answer = http(said("the last"))
    await proxied.post("/api/chat", CHAT)
    assert await remembered(proxied) == [("default", "How deep?", "the last")]


@pytest.mark.parametrize(
    ("path", "payload", "answer"),
    [
        ("/api/chat", CHAT, http(said("Very ", "deep."), "application/x-ndjson")),
        ("/api/chat", {**CHAT, "stream": False}, http(b'{"message": {"content": "Very deep."}, "done": true}')),
        (
            "/api/generate",
            {"model": "m", "prompt": "How deep?"},
            http(ndjson({"response": "Very "}, {"response": "deep.", "done": True}), "application/x-ndjson"),
        ),
        ("/v1/chat/completions", {**CHAT, "stream": True}, http(sse("Very ", "deep."), "text/event-stream")),
        (
            "/v1/chat/completions",
            CHAT,
            http(b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Very deep."}}]}'),
        ),
        ("/v1/completions", {"model": "m", "prompt": "How deep?"}, http(b'{"choices": [{"text": "Very deep."}]}')),
        (
            "/v1/completions",
            {"model": "m", "prompt": "How deep?"},
            http(events({"choices": [{"text": "Very "}]}, {"choices": [{"text": "deep."}]}) + b"data: [DONE]\n\n"),
        ),
        ("/v1/responses", {"model": "m", "input": "How deep?"}, http(json.dumps(COMPLETED).encode())),
        (
            "/v1/responses",
            {"model": "m", "input": [{"role": "user", "content": "How deep?"}]},
            http(events({"type": "response.created"}, {"type": "response.completed", "response": COMPLETED})),
        ),
        (
            "/v1/messages",
            {**CHAT, "max_tokens": 9},
            http(b'{"type": "message", "content": [{"type": "thinking"}, {"type": "text", "text": "Very deep."}]}'),
        ),
        (
            "/v1/messages",
            {**CHAT, "max_tokens": 9},
            http(
                events(
                    {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm."}},
                    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Very deep."}},
                    {"type": "message_stop"},
                )
            ),
        ),
        (
            "/api/generate",
            {"model": "m", "prompt": "### User:\nHow deep?\n\n"},
            http(b'{"response": "Very deep.", "done": true}'),
        ),
    ],
)
async def test_question_and_answer_are_remembered_without_changing_a_byte(start, path, payload, answer):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = answer
    reply = await proxied.post(path, payload)
    assert await remembered(proxied) == [("default", "How deep?", "Very deep.")]
    assert reply.body == answer.partition(b"\r\n\r\n")[2]
    assert json.loads(proxied.ollama.requests[0].body) == payload


async def test_a_rag_question_is_remembered_without_command_and_evidence(start):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(b'{"response": "Very deep.", "done": true}')
    await proxied.post("/api/generate", {"model": "m", "prompt": "/rag How deep?", "workspace": "sea"})
    assert await remembered(proxied) == [("sea", "How deep?", "Very deep.")]


async def test_memory_knows_which_exchanges_the_model_was_given(start):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(b'{"response": "Very deep.", "done": true}')
    proxied.enricher.recalled = (Document("d1", "User: How deep?\nAssistant: Very deep.", "local"),)
    reply = await proxied.post("/api/generate", {"model": "m", "prompt": "/rag How deep?"})
    await remembered(proxied)
    assert proxied.memory.recalled == [("User: How deep?\nAssistant: Very deep.",)]
    assert reply.header(b"x-rag-memory") == [b"1"]


async def test_the_header_names_the_workspace(start):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(said("Very deep."))
    await proxied.post("/api/chat", CHAT, (b"X-RAG-Workspace: work",))
    assert (await remembered(proxied))[0][0] == "work"


async def test_an_exchange_without_permission_is_forwarded_and_not_remembered(start):
    proxied = await start(store_exchanges=True, workspace_tokens='{"secret": ["mine"]}')
    proxied.ollama.answer = http(said("Very deep."))
    token = b"Authorization: Bearer secret"
    assert (await proxied.post("/api/chat", CHAT, (token, b"X-RAG-Workspace: other"))).status == 200
    assert (await proxied.post("/api/chat", CHAT, (token,))).status == 200
    assert await remembered(proxied) == [("mine", "How deep?", "Very deep.")]


@pytest.mark.parametrize(
    ("path", "payload", "answer"),
    [
        ("/api/chat", CHAT, http(said("Very ", done=False))),
        ("/api/chat", CHAT, http(said("Very ", done=False) + ndjson({"error": "out of memory"}))),
        ("/api/chat", CHAT, http(b'{"error": "no such model"}', status="404 Not Found")),
        ("/api/chat", CHAT, http(said("Very deep."), more="Content-Encoding: br\r\n")),
        ("/api/chat", CHAT, http(b"nonsense")),
        ("/api/chat", CHAT, http(b"[1, 2]")),
        ("/api/chat", {"model": "m", "messages": []}, http(said("loaded"))),
        ("/api/chat", {"model": "m", "messages": 7}, http(said("loaded"))),
        (
            "/api/generate",
            {"model": "m", "prompt": "def f(", "suffix": "return"},
            http(b'{"response":"x","done":true}'),
        ),
        (
            "/api/generate",
            {"model": "m", "prompt": "[INST] How deep? [/INST]", "raw": True},
            http(b'{"response":"x","done":true}'),
        ),
        ("/v1/chat/completions", CHAT, http(sse("Very ", end=b""), "text/event-stream")),
        ("/v1/chat/completions", CHAT, http(sse(end=b'data: {"error": {}}\n\ndata: [DONE]\n\n'), "text/event-stream")),
        ("/v1/chat/completions", CHAT, http(b'{"choices": []}')),
        ("/v1/responses", {"model": "m", "input": "How deep?"}, http(events({"type": "response.created"}))),
        ("/v1/responses", {"model": "m", "input": "x"}, http(json.dumps({**COMPLETED, "status": "failed"}).encode())),
        ("/v1/messages", {**CHAT, "max_tokens": 9}, http(events(STOPPED))),
        ("/v1/messages", {**CHAT, "max_tokens": 9}, http(events(STOPPED, {"type": "error"}, {"type": "message_stop"}))),
        ("/v1/messages", {**CHAT, "max_tokens": 9}, http(b'{"type": "error", "error": {}}')),
        ("/api/embed", {"model": "m", "input": "How deep?"}, http(said("Very deep."))),
    ],
)
async def test_an_incomplete_exchange_is_not_remembered(start, path, payload, answer):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = answer
    await proxied.post(path, payload)
    await assert_only_the_next_is_remembered(proxied)


HISTORY = "<chat_history>\nUSER: How deep?\nASSISTANT: Very deep.\n</chat_history>"


@pytest.mark.parametrize(
    "prompt",
    [
        f"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n{HISTORY}",
        f"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history.\n{HISTORY}",
        f"### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might ask next.\n{HISTORY}",
        f"### Task:\nAnalyze the chat history to determine the necessity of generating search queries.\n{HISTORY}",
        f"\n### Task:\nYou are an autocompletion system. Continue the text in `<text>`.\n{HISTORY}",
        "Your task is to reflect the speaker's likely facial expression through a fitting emoji.\n\nMessage: ```?```",
        'You have been provided with a set of responses from various models to the latest user query: "How deep?"',
    ],
)
@pytest.mark.parametrize("path", ["/api/chat", "/v1/chat/completions"])
async def test_a_clients_background_request_is_not_remembered(start, path, prompt):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(said("{}")) if path == "/api/chat" else http(sse("{}"), "text/event-stream")
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "metadata": {"task": "title_generation"}}
    assert (await proxied.post(path, body)).status == 200
    await assert_only_the_next_is_remembered(proxied)


async def test_a_users_own_heading_is_remembered(start):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(said("Very deep."))
    await proxied.post("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "# Task: how deep?"}]})
    assert await remembered(proxied) == [("default", "# Task: how deep?", "Very deep.")]


async def test_without_the_setting_nothing_is_remembered(start):
    proxied = await start()
    proxied.ollama.answer = http(said("Very deep."))
    assert (await proxied.post("/api/chat", CHAT)).status == 200
    assert proxied.memory.exchanges == []


async def test_the_answer_streams_and_ends_before_it_is_remembered(start):
    proxied = await start(store_exchanges=True)
    go, released = asyncio.Event(), asyncio.Event()
    proxied.memory.before = released.wait

    async def slow(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (said("Very ", done=False), said("deep.")):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await go.wait()
        writer.write(b"0\r\n\r\n")

    proxied.ollama.answer = slow
    reader, writer = await proxied.open()
    writer.write(raw_post("/api/chat", json.dumps(CHAT).encode()))
    async with asyncio.timeout(5):
        await reader.readuntil(b'"Very "')
        go.set()
        await reader.readuntil(b"\r\n0\r\n\r\n")
        assert proxied.memory.exchanges == []
        released.set()
    assert await remembered(proxied) == [("default", "How deep?", "Very deep.")]
    writer.close()


async def test_a_disconnected_client_leaves_no_recording(start):
    proxied = await start(store_exchanges=True)

    async def endless(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + said("Very ", done=False))
        await writer.drain()
        await proxied.ollama.reader.read()
        proxied.ollama.disconnected.set()

    proxied.ollama.answer = endless
    reader, writer = await proxied.open()
    writer.write(raw_post("/api/chat", json.dumps(CHAT).encode()))
    async with asyncio.timeout(5):
        await reader.readuntil(b'"Very "')
        writer.close()
        await proxied.ollama.disconnected.wait()
    await assert_only_the_next_is_remembered(proxied)


@pytest.mark.parametrize(
    "failure", [ServiceUnavailable("knowledge_base", "down: How deep?"), RuntimeError("How deep?")]
)
async def test_a_memory_failure_is_logged_without_content(start, caplog, failure):
    proxied = await start(store_exchanges=True)
    proxied.memory.failure = failure
    proxied.ollama.answer = http(said("Very deep."))
    with caplog.at_level(logging.DEBUG, "cragside"):
        assert (await proxied.post("/api/chat", CHAT)).status == 200
        await remembered(proxied)
        await asyncio.sleep(0)
    assert "was not remembered" in caplog.text
    assert "deep" not in caplog.text


async def test_a_long_answer_passes_whole_and_is_not_remembered(start, monkeypatch):
    monkeypatch.setattr(module, "_LONGEST_ANSWER", 2000)
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(said(*["many words "] * 100))
    reply = await proxied.post("/api/chat", CHAT)
    assert reply.body == said(*["many words "] * 100)
    await assert_only_the_next_is_remembered(proxied)


async def _nowhere(_message):
    return


def start_of(exchanges: Exchanges, request: bytes):
    return exchanges.record(_nowhere, path="/api/chat", headers=(), request=request, workspace="w")


async def recorded(exchanges: Exchanges) -> None:
    recording = start_of(exchanges, json.dumps(CHAT).encode())
    await recording({"type": "http.response.start", "status": 200, "headers": []})
    await recording({"type": "http.response.body", "body": said("Very deep.")})
    recording.finish()


async def test_the_total_size_of_recordings_is_limited(monkeypatch):
    monkeypatch.setattr(module, "_MOST_HELD", 100)
    exchanges = Exchanges(FakeMemory(), "/rag")
    first, second = start_of(exchanges, bytes(60)), start_of(exchanges, bytes(60))
    assert (first.usable, second.usable) == (True, False)
    second.finish()
    first.finish()
    assert exchanges._held == 0
    assert start_of(exchanges, bytes(100)).usable


async def test_more_exchanges_than_memory_can_take_are_left_out(monkeypatch, caplog):
    monkeypatch.setattr(module, "_MOST_WAITING", 1)
    memory = FakeMemory()
    exchanges = Exchanges(memory, "/rag")
    for _ in range(2):
        await recorded(exchanges)
    await exchanges.drain()
    assert len(memory.exchanges) == 1
    assert "left out" in caplog.text
    assert exchanges._held == 0


async def test_a_stopping_server_finishes_pending_memories():
    container = faked(Settings(store_exchanges=True))
    container.memory.before = lambda: asyncio.sleep(0.05)
    stopped_with = []

    async def app(_scope, receive, _send):
        while (await receive())["type"] != "lifespan.shutdown":
            pass
        stopped_with.append(len(container.memory.exchanges))

    proxy = Proxy(container, app, keys=Keys(container))
    await recorded(proxy._forwarder._exchanges)
    events = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive():
        return next(events)

    await proxy({"type": "lifespan"}, receive, _nowhere)
    assert stopped_with == [1]


async def test_a_server_that_is_interrupted_ends_its_application_without_a_failure():
    container = faked(Settings(store_exchanges=True))
    sent, started = [], asyncio.Event()
    events = asyncio.Queue()
    events.put_nowait({"type": "lifespan.startup"})

    async def send(message):
        sent.append(message["type"])
        started.set()

    serving = asyncio.create_task(
        Proxy(container, FastAPI(), keys=Keys(container))({"type": "lifespan"}, events.get, send)
    )
    await started.wait()
    await asyncio.sleep(0)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/v1/chat/completions"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"null",
        b"7",
        b"{}",
        b'{"done": true}',
        b'{"message": 7, "done": true}',
        b"data: 7\n\n",
        b"[" * 9999,
        b'{"response": 7, "done": true}',
        b'data: {"choices": [7]}\n\n',
        b'{"choices": [{"message": null}]}',
    ],
)
def test_no_bytes_break_the_reading(path, body):
    assert not answered_text(path, body)
    request = parsed(body)
    assert request is None or not user_prompt(path, request, "/rag")


def test_a_plain_ok_is_no_answer():
    assert answered_text("/api/generate", OK.partition(b"\r\n\r\n")[2]) is None


@pytest.mark.parametrize(
    ("headers", "fields"), [((b"X-OpenWebUI-User-Id: ada",), {}), ((b"X-RAG-User: ada",), {}), ((), {"user": "ada"})]
)
async def test_an_exchange_belongs_to_the_user_whom_the_host_names(start, headers, fields):
    proxied = await start(store_exchanges=True)
    proxied.ollama.answer = http(said("Very deep."))
    await proxied.post("/api/chat", {**CHAT, **fields}, headers=headers)
    assert await remembered(proxied) == [("default", "How deep?", "Very deep.")]
    assert proxied.memory.exchanges[0][1].end_user == "ada"
    assert b"x-rag-user" not in {name.lower() for name, _ in proxied.ollama.requests[0].headers}
