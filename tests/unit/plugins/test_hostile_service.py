"""Plugs survive answers that are not from a well-behaved cragside."""

import asyncio
import gzip
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cragside import client as client_module
from cragside.client import Client
from cragside.domain.errors import ConfigurationError, DeadlineExceeded, ProcessingError, Unauthorized
from cragside.plugins.open_webui_filter import Filter
from cragside.plugins.open_webui_pipeline import Pipeline
from cragside.plugins.service import Service
from cragside.plugins.smart_proxy import PluginConfiguration, RagAgent

TOKEN = "a-secret-token"
CHAT = [{"role": "user", "content": "/rag What lit it?"}]
PASSAGE = {"id": "1", "content": "water power", "score": 0.9, "title": "T", "metadata": {}}
Write = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the test says."""

    server: "Hostile"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((dict(self.headers), self.body))
        with suppress(ConnectionError):
            self.server.write(self)

    def send(self, value: Any, status: int = 200, **headers: str) -> None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(content)


class Hostile(ThreadingHTTPServer):
    """A server on loopback that answers each request by `write`, and keeps what it has seen."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[dict[str, str], Any]] = []
        self.write: Write = lambda handler: handler.send({})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    with Hostile() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def evidence(messages: list[dict[str, Any]], *documents: Any, **context: Any) -> dict[str, Any]:
    told = {"role": "system", "content": "<evidence>"}
    found = {"documents": list(documents), "verdict": "local", **context}
    return {"messages": [*messages[:-1], told, messages[-1]], "metadata": {"rag_context": found}}


async def test_a_redirect_is_not_followed_so_that_no_other_host_gets_the_token(hostile: Hostile) -> None:
    with Hostile() as other:
        threading.Thread(target=other.serve_forever, args=(0.02,), daemon=True).start()
        hostile.write = lambda handler: handler.send({}, 307, Location=f"{other.url}/v1/enrich")
        with pytest.raises(ProcessingError, match="status 307"):
            await Service(hostile.url, TOKEN).enriched(CHAT)
        other.shutdown()
        assert other.seen == []


async def test_an_error_tells_neither_the_token_nor_lines_of_its_own(hostile: Hostile) -> None:
    forged = f"no\nERROR all is well \x1b[31m {TOKEN}" + "x" * 9_000
    error = {"type": "unauthorized", "message": forged, "details": {"header": f"Bearer {TOKEN}"}}
    hostile.write = lambda handler: handler.send({"error": error}, 401)
    with pytest.raises(Unauthorized) as raised:
        await Service(hostile.url, TOKEN).enriched(CHAT)
    assert raised.value.message.startswith("no ERROR all is well  [31m ***x")
    assert raised.value.message.isprintable()
    assert len(raised.value.message) <= 2_000
    assert TOKEN not in str(raised.value.details)


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"[" * 65_536)


async def test_an_answer_without_end_is_not_read_to_it(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_ANSWER_BYTES", 2**20)
    hostile.write = endless
    with pytest.raises(ProcessingError, match="answered more than 1 MB"):
        await Service(hostile.url).enriched(CHAT)


async def test_a_packed_answer_is_not_unpacked(hostile: Hostile) -> None:
    packed = gzip.compress(gzip.compress(b"[" * 10_000_000))
    hostile.write = lambda handler: handler.send(packed, Content_Encoding="gzip, gzip")
    with pytest.raises(ProcessingError, match="answered compressed"):
        await Service(hostile.url).enriched(CHAT)
    [(headers, _)] = hostile.seen
    assert headers["Accept-Encoding"] == "identity"


async def test_what_a_bucket_answers_is_not_read(hostile: Hostile) -> None:
    class Bucket(Handler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            with suppress(ConnectionError):
                endless(self)
            over.set()

    over = threading.Event()
    hostile.RequestHandlerClass = Bucket
    async with Client(hostile.url) as client:
        await asyncio.wait_for(client.send_elsewhere(f"{hostile.url}/bucket", {"key": "k"}, b"text"), 10)
    assert over.wait(10)


async def test_an_answer_of_many_slow_pieces_ends_with_the_time(hostile: Hostile) -> None:
    over = threading.Event()

    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not over.wait(0.02):
            handler.wfile.write(b" ")

    hostile.write = drip
    with pytest.raises(DeadlineExceeded):
        await Service(hostile.url, seconds=0.3).enriched(CHAT)
    over.set()


async def test_no_cookie_goes_from_one_request_to_the_next(hostile: Hostile) -> None:
    hostile.write = lambda handler: handler.send({}, Set_Cookie="session=the-first-user; Path=/")
    async with Client(hostile.url) as client:
        await client.post("/v1/enrich", {})
        await client.post("/v1/enrich", {})
    assert not any("Cookie" in headers for headers, _ in hostile.seen)


async def test_requests_of_two_users_at_once_keep_apart(hostile: Hostile) -> None:
    hostile.write = lambda handler: handler.send({**evidence(handler.body["messages"]), "whose": handler.body["whose"]})
    agent = RagAgent(endpoint=hostile.url)
    requests = [{"messages": [{"role": "user", "content": f"/rag {n}"}], "whose": n} for n in range(20)]
    answers = await asyncio.gather(*map(agent.on_retrieve, requests))
    await agent.close()
    assert [(each["whose"], each["messages"][-1]["content"]) for each in answers] == [
        (n, f"/rag {n}") for n in range(20)
    ]


def test_hosts_may_ask_from_several_event_loops(hostile: Hostile) -> None:
    class Keeping(Handler):
        protocol_version = "HTTP/1.1"  # a connection stays open, and belongs to its loop

    hostile.RequestHandlerClass = Keeping
    hostile.write = lambda handler: handler.send(evidence(handler.body["messages"]))
    client = Client(hostile.url)
    agent = RagAgent(endpoint=client, fail_mode="closed")

    async def asked() -> str:
        return str((await agent.on_retrieve({"messages": CHAT}))["metadata"]["rag_context"]["verdict"])

    async def asked_beside() -> list[str]:
        return [await asked(), await asyncio.to_thread(lambda: asyncio.run(asked())), await asked()]

    assert [asyncio.run(asked()) for _ in range(2)] == ["local"] * 2
    assert asyncio.run(asked_beside()) == ["local"] * 3
    assert len(client._by_loop) <= 2  # what loops leave when they close is not kept for long


async def test_a_retriever_needs_no_command_and_sends_the_question_as_it_is(hostile: Hostile) -> None:
    hostile.write = lambda handler: handler.send(evidence(handler.body["messages"], PASSAGE))
    found = await Service(hostile.url, command="/other").evidence("What lit it?")
    assert [each["content"] for each in found.documents] == ["water power"]
    [(headers, body)] = hostile.seen
    assert headers["X-RAG"] == "always"
    assert body == {"messages": [{"role": "user", "content": "What lit it?"}]}
    await Service(hostile.url).enriched(CHAT)
    assert "X-RAG" not in hostile.seen[1][0]


async def test_half_a_surrogate_pair_is_sent_as_it_came(hostile: Hostile) -> None:
    hostile.write = lambda handler: handler.send(evidence(handler.body["messages"]))
    question = {"role": "user", "content": "/rag \ud800?"}
    enriched, _ = await Service(hostile.url).enriched([question])
    assert enriched[-1] == question


MALFORMED: list[Any] = [
    {},
    [],
    CHAT,
    {"messages": CHAT},
    {"messages": CHAT, "metadata": {"rag_context": []}},
    {**evidence(CHAT), "messages": []},
    {**evidence(CHAT), "messages": "text"},
    {**evidence(CHAT), "messages": [1]},
    {**evidence(CHAT), "messages": [{"role": 1, "content": ""}]},
    {**evidence(CHAT), "messages": [{"content": ""}]},
    {**evidence(CHAT), "messages": [["role"]]},
    evidence(CHAT, "text"),
    evidence(CHAT, {"id": "1"}),
    evidence(CHAT, {**PASSAGE, "content": {}}),
    evidence(CHAT, {**PASSAGE, "metadata": "text"}),
    evidence(CHAT, {**PASSAGE, "score": float("nan")}),
    evidence(CHAT, {**PASSAGE, "score": float("inf")}),
    evidence(CHAT, {**PASSAGE, "score": 10**400}),
    evidence(CHAT, {**PASSAGE, "score": True}),
    evidence(CHAT, {**PASSAGE, "similarity": "0.9"}),
    evidence(CHAT, {**PASSAGE, "title": {}}),
    evidence(CHAT, {**PASSAGE, "url": ["https://example.com"]}),
    b"[" * 200_000,
    b"\xff",
]


@pytest.mark.parametrize("answer", MALFORMED, ids=lambda answer: str(answer)[:60])
async def test_a_malformed_answer_leaves_the_chat_as_it_was(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    hostile.write = lambda handler: handler.send(answer)
    monkeypatch.setenv("CRAGSIDE_ENDPOINT", hostile.url)
    body, events = {"messages": CHAT}, list[Any]()
    agent = RagAgent(endpoint=hostile.url)

    async def emit(event: Any) -> None:
        events.append(event)

    plug = Filter()
    plug.valves.endpoint = hostile.url
    assert await plug.inlet(body, emit) is body
    assert events[-1]["data"] == {"description": "No evidence (processing_error)", "done": True}
    assert await Pipeline().inlet(body) is body
    assert await agent.on_retrieve(body) is body
    await agent.close()


async def test_a_chat_whose_model_has_called_a_tool_gets_evidence(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "time", "arguments": "{}"}}
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "How late is it?"},
        {"role": "assistant", "tool_calls": [call]},  # no content
        {"role": "tool", "tool_call_id": "1", "content": "noon"},
        *CHAT,
    ]
    hostile.write = lambda handler: handler.send(evidence(handler.body["messages"], PASSAGE))
    monkeypatch.setenv("CRAGSIDE_ENDPOINT", hostile.url)
    plug = Filter()
    plug.valves.endpoint = hostile.url
    enriched = evidence(chat)["messages"]
    assert (await plug.inlet({"messages": chat}))["messages"] == enriched
    assert (await Pipeline().inlet({"messages": chat}))["messages"] == enriched


@pytest.mark.parametrize("messages", [None, "text", [1], [{"role": "user", "content": 5}], []])
async def test_a_body_that_is_no_chat_is_left_alone(messages: Any) -> None:
    body = {"messages": messages}
    assert await Filter().inlet(body) is body
    assert await Pipeline().inlet(body) is body


async def test_a_browser_that_is_gone_does_not_end_the_chat(hostile: Hostile) -> None:
    hostile.write = lambda handler: handler.send(evidence(handler.body["messages"], PASSAGE))
    plug = Filter()
    plug.valves.endpoint = hostile.url

    async def emit(_: Any) -> None:
        raise ConnectionResetError

    assert len((await plug.inlet({"messages": CHAT}, emit))["messages"]) == 2


@pytest.mark.parametrize("valve", [{"workspace": "büro"}, {"workspace": "a\r\nX: y"}, {"token": "a\nb"}])
async def test_a_valve_that_cannot_be_sent_leaves_the_chat_as_it_was(hostile: Hostile, valve: dict[str, str]) -> None:
    plug, body = Filter(), {"messages": CHAT}
    plug.valves = plug.Valves(endpoint=hostile.url, **valve)
    assert await plug.inlet(body) is body
    assert hostile.seen == []


@pytest.mark.parametrize("command", ["", " ", "/my docs", " /rag", "/rag\n"])
async def test_a_command_that_cannot_be_one_is_refused_at_the_start(command: str) -> None:
    with pytest.raises(ConfigurationError, match="command has to be one word"):
        RagAgent(endpoint="http://127.0.0.1:9", configuration=PluginConfiguration(command_prefix=command))
    with pytest.raises(ConfigurationError, match="command has to be one word"):
        await Service("http://127.0.0.1:9", command=command).check()


def test_a_fail_mode_that_does_not_exist_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="fail_mode is open or closed"):
        RagAgent(endpoint="http://127.0.0.1:9", fail_mode="close")  # type: ignore[arg-type]


async def test_a_pipeline_says_at_the_start_that_cragside_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CRAGSIDE_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("RAG_API_TOKEN", TOKEN)
    with caplog.at_level(logging.ERROR, logger="cragside.plugins"):
        await Pipeline().on_startup()
    assert "Messages will go on without evidence: The service at http://127.0.0.1:9 cannot be reached" in caplog.text
    assert TOKEN not in caplog.text


async def test_a_command_in_the_evidence_asks_for_nothing(hostile: Hostile) -> None:
    """Two plugs one behind the other, such as a filter and a pipeline: the second sees no command."""
    passage = {**PASSAGE, "content": "/rag What else?"}
    block = {"role": "system", "content": passage["content"]}
    question = {"role": "user", "content": "What lit it?"}
    hostile.write = lambda handler: handler.send({**evidence(CHAT, passage), "messages": [block, question]})
    plug = Filter()
    plug.valves.endpoint = hostile.url
    first = await plug.inlet({"messages": CHAT})
    assert await plug.inlet(first) is first
    assert len(hostile.seen) == 1
