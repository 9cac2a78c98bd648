"""`/rag?` through the proxy: every dialect answers with the explanation, and Ollama is asked for nothing."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from proxy_stub import FakeHost, FakeMemory, Proxied, StubOllama, listening, own_app

from cragside.application.grading import Grading
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.entrypoints.access import Keys
from cragside.entrypoints.proxy.app import Proxy
from cragside.entrypoints.proxy.routes import ROUTES
from cragside.settings import Settings
from tests.fakes import WordGrader

QUESTION = "who lights the harbour lamp?"
HOSTILE = "The keeper lights the harbour lamp.\n```\n![x](http://203.0.113.1/?leak) <script>alert(1)</script>\n````"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled")
    container = Container(Settings(home=home))  # type: ignore[call-arg]
    source = SourceText("keeper.md", HOSTILE, title="A `](http://203.0.113.1)` <b>lamp</b>")
    await container.intake.text(source, workspace="default")
    await container.worker().run(until_idle=True, sweep=False)
    await container.close()
    return home


@pytest.fixture
async def proxied(filled: Path, tmp_path: Path) -> AsyncIterator[Proxied]:
    async with AsyncExitStack() as stack:
        ollama = StubOllama()
        server = await asyncio.start_server(ollama.serve, "127.0.0.1", 0)
        stack.callback(server.close)
        ollama.port = server.sockets[0].getsockname()[1]
        settings = Settings(
            home=shutil.copytree(filled, tmp_path / "home"),
            ollama_base_url=f"http://127.0.0.1:{ollama.port}",
            chat_model="embedded",
            store_exchanges=True,
        )
        container = Container(settings, host=None, upstream=FakeHost(8192, 8192), memory=FakeMemory())
        stack.push_async_callback(container.close)
        port = await stack.enter_async_context(listening(Proxy(container, own_app(), keys=Keys(container))))
        yield Proxied(port, ollama, container)


def asked(path: str, text: str = f"/rag? {QUESTION}", **more: Any) -> dict[str, Any]:
    if path == "/v1/responses":
        prompt: dict[str, Any] = {"input": text}
    elif path in ("/api/generate", "/v1/completions"):
        prompt = {"prompt": text}
    else:
        prompt = {"messages": [{"role": "user", "content": text}], "max_tokens": 64}
    return {"model": "m:latest", **prompt, **more}


def assert_explains(text: str) -> None:
    steps = re.findall(r"^- (\w+): [\d.]+ ms", text, re.MULTILINE)
    assert steps == ["retrieve", "grade", "decide", "inject"]
    assert text.startswith("**Why this evidence**")
    assert "**Verdict: local**" in text
    assert "kept as [1]" in text
    assert "lights the harbour lamp.\n```\n" in text
    # Outside of code, nothing of the document is left: neither an image nor a link nor a tag.
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$|(`+) .*? \2", "", text)
    for mark_up in ("203.0.113.1", "<script", "<b>", "!["):
        assert mark_up in text
        assert mark_up not in outside


def assert_ollama_rested(proxied: Proxied) -> None:
    assert proxied.ollama.requests == []
    assert proxied.container.memory.exchanges == []


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
async def test_ollama_streams_unless_told_otherwise(proxied: Proxied, path: str) -> None:
    reply = await proxied.post(path, asked(path))
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert (b"content-type", b"application/x-ndjson") in reply.headers
    texts = [line["response"] if path == "/api/generate" else line["message"]["content"] for line in lines]
    assert_explains("".join(texts))
    assert len(lines) > 5
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1]["done_reason"] == "stop"
    assert lines[-1]["total_duration"] > 0
    assert {line["model"] for line in lines} == {"m:latest"}
    assert_ollama_rested(proxied)


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
async def test_ollama_answers_at_once_if_asked(proxied: Proxied, path: str) -> None:
    reply = await proxied.post(path, asked(path, stream=False))
    body = json.loads(reply.body)
    assert_explains(body["response"] if path == "/api/generate" else body["message"]["content"])
    assert body["done"] is True
    assert_ollama_rested(proxied)


async def test_openai_streams_events(proxied: Proxied) -> None:
    path = "/v1/chat/completions"
    reply = await proxied.post(path, asked(path, stream=True, stream_options={"include_usage": True}))
    assert (b"content-type", b"text/event-stream") in reply.headers
    data = [block.removeprefix("data: ") for block in reply.body.decode().split("\n\n") if block]
    assert data[-1] == "[DONE]"
    *chunks, usage = [json.loads(each) for each in data[:-1]]
    assert_explains("".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks))
    assert {(chunk["object"], chunk["model"], chunk["id"]) for chunk in chunks} == {
        ("chat.completion.chunk", "m:latest", usage["id"])
    }
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 0)
    assert_ollama_rested(proxied)


async def test_openai_answers_at_once_unless_told_otherwise(proxied: Proxied) -> None:
    path = "/v1/chat/completions"
    body = json.loads((await proxied.post(path, asked(path))).body)
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert_explains(body["choices"][0]["message"]["content"])
    assert_ollama_rested(proxied)


def events_of(body: bytes) -> list[dict[str, Any]]:
    """The data of named events, whose names are their types."""
    events = []
    for block in body.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


async def test_completions_are_explained(proxied: Proxied) -> None:
    path = "/v1/completions"
    body = json.loads((await proxied.post(path, asked(path))).body)
    assert (body["object"], body["choices"][0]["finish_reason"]) == ("text_completion", "stop")
    assert_explains(body["choices"][0]["text"])
    reply = await proxied.post(path, asked(path, stream=True))
    data = [block.removeprefix("data: ") for block in reply.body.decode().split("\n\n") if block]
    assert data.pop() == "[DONE]"
    assert_explains("".join(json.loads(each)["choices"][0]["text"] for each in data))
    assert_ollama_rested(proxied)


async def test_responses_are_explained(proxied: Proxied) -> None:
    path = "/v1/responses"
    whole = json.loads((await proxied.post(path, asked(path))).body)
    assert_explains(whole["output"][0]["content"][0]["text"])
    reply = await proxied.post(path, asked(path, stream=True))
    assert (b"content-type", b"text/event-stream") in reply.headers
    events = events_of(reply.body)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    told = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert_explains(told)
    assert [event["type"] for event in events if "delta" not in event] == [
        *(f"response.{name}" for name in ("created", "in_progress", "output_item.added", "content_part.added")),
        *(f"response.{name}" for name in ("output_text.done", "content_part.done", "output_item.done", "completed")),
    ]
    end = events[-1]["response"]
    assert (end["status"], end["output"][0]["content"][0]["text"]) == ("completed", told)
    assert end.keys() == whole.keys()
    assert_ollama_rested(proxied)


async def test_anthropics_messages_are_explained(proxied: Proxied) -> None:
    path = "/v1/messages"
    whole = json.loads((await proxied.post(path, asked(path))).body)
    assert (whole["type"], whole["stop_reason"], whole["model"]) == ("message", "end_turn", "m:latest")
    assert_explains(whole["content"][0]["text"])
    events = events_of((await proxied.post(path, asked(path, stream=True))).body)
    assert_explains("".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta"))
    assert [event["type"] for event in events if event["type"] != "content_block_delta"] == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert_ollama_rested(proxied)


@pytest.mark.parametrize("text", ["/ragtime? who?", "/rag?who lights it?", "what does /rag? do?"])
async def test_other_prompts_pass_through(proxied: Proxied, text: str) -> None:
    await proxied.post("/api/chat", asked("/api/chat", text))
    assert json.loads(proxied.ollama.requests[0].body)["messages"][0]["content"] == text


@pytest.mark.parametrize("path", sorted(ROUTES))
async def test_a_missing_question_is_an_error_in_the_dialect(proxied: Proxied, path: str) -> None:
    reply = await proxied.post(path, asked(path, "/rag?"))
    assert reply.status == 400
    assert "error" in json.loads(reply.body)
    assert proxied.ollama.requests == []


async def test_the_explanation_is_of_what_ollama_would_get(proxied: Proxied) -> None:
    explained = json.loads((await proxied.post("/api/generate", asked("/api/generate", stream=False))).body)["response"]
    await proxied.post("/api/generate", asked("/api/generate", f"/rag {QUESTION}", stream=False))
    sent = json.loads(proxied.ollama.requests[0].body)["prompt"]

    def without_code(text: str) -> str:
        return re.sub(r"\b[a-z0-9]{6}\b", "", text)

    assert without_code(sent) in without_code(explained)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("similarity", [r"\. Mode: similarity\.", r"cosine 0\.\d\d: kept as \[1\]"]),
        ("off", [r"\. Mode: off\.", "say that prompts get no evidence"]),
    ],
)
@pytest.mark.parametrize("streams", [True, False])
async def test_evidence_that_nobody_graded_is_explained_too(
    proxied: Proxied, mode: str, told: list[str], streams: bool
) -> None:
    await proxied.container.preferences.change("default", {"mode": mode, "similarity_threshold": 0.0})
    reply = await proxied.post("/api/generate", asked("/api/generate", stream=streams))
    text = "".join(json.loads(line)["response"] for line in reply.body.splitlines())
    assert "threshold" not in text
    for each in told:
        assert re.search(each, text), text


async def test_what_breaks_inside_is_not_shown(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise TypeError("a secret of the inside")

    monkeypatch.setattr("cragside.domain.explanation._candidate_line", broken)
    for path, streams in product(sorted(ROUTES), (True, False)):
        reply = await proxied.post(path, asked(path, stream=streams))
        assert b"could not be explained" in reply.body
        assert b"secret" not in reply.body


async def test_a_client_that_leaves_stops_the_run(proxied: Proxied) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    class Stuck(WordGrader):
        async def grade(self, query: str, documents: Any) -> list[float]:
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()
            return []

    object.__setattr__(proxied.container.finder.tools, "grading", Grading(stuck := Stuck(), stuck))
    reader, writer = await asyncio.open_connection("127.0.0.1", proxied.port)
    body = json.dumps(asked("/api/chat")).encode()
    head = f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    writer.write(head + body)
    await asyncio.wait_for(started.wait(), 10)
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()
    await asyncio.wait_for(stopped.wait(), 10)
