"""A stub Ollama that records raw requests, and the proxy in front of it, both on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from cragside.application.enricher import Enriched
from cragside.application.memory import Remembered
from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable, ValidationError
from cragside.domain.evidence import Document
from cragside.domain.exchange import Exchange
from cragside.domain.outcome import Degradation, RagContext, Watch
from cragside.domain.preferences import NOTHING_FOUND, Preferences, Prompts
from cragside.domain.prompt import inject, question_in, user_text
from cragside.domain.token_counts import ModelWindows
from cragside.settings import Settings


@dataclass
class Recorded:
    """A request as it came over the wire; the body without its framing."""

    head: bytes
    body: bytes

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n", 1)[0]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        lines = self.head.rstrip(b"\r\n").split(b"\r\n")[1:]
        return [(name.lower(), value.strip(b" ")) for name, _, value in (line.partition(b":") for line in lines)]

    def header(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key == name]


Answer = Callable[[Recorded, asyncio.StreamWriter], Awaitable[None]]


def raw_post(path: str, body: bytes, headers: bytes = b"") -> bytes:
    """Return a whole request; `headers` end with their line's end."""
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\n%bContent-Length: %d\r\n\r\n"
    return head % (path.encode(), headers, len(body)) + body


OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{"response":"ok"}'


@dataclass
class StubOllama:
    """Records requests and gives `answer`: raw bytes, or a coroutine that writes."""

    answer: bytes | Answer = OK
    requests: list[Recorded] = field(default_factory=list)
    connections: int = 0
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.StreamReader | None = None
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.reader = reader
        try:
            while True:
                request = await self._read(reader)
                self.requests.append(request)
                if isinstance(self.answer, bytes):
                    writer.write(self.answer)
                else:
                    await self.answer(request, writer)
                if writer.is_closing():
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.disconnected.set()
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Recorded:
        head = await reader.readuntil(b"\r\n\r\n")
        request = Recorded(head, b"")
        if request.header(b"transfer-encoding") == [b"chunked"]:
            while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
                request.body += (await reader.readexactly(size + 2))[:-2]
            await reader.readexactly(2)
        elif length := request.header(b"content-length"):
            request.body = await reader.readexactly(int(length[0]))
        return request


@dataclass
class FakeEnricher:
    """`Enricher` with one passage for every question."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    failure: Exception | None = None
    documents: int = 1
    degraded: tuple[Degradation, ...] = ()
    block: str = "<evidence>\n[1] a passage\n</evidence>"
    before: Callable[[], Awaitable[None]] | None = None
    recalled: tuple[Document, ...] | None = None

    async def enrich(
        self,
        request: Mapping[str, Any],
        *,
        question: str | None = None,
        workspace: str | None = None,
        persona: str | None = None,
        memory: bool | None = None,
        tell_none: bool = False,
        end_user: str = "",
        evidence_tokens: int | None = None,
        timeout: float | None = None,
        watch: Watch | None = None,
    ) -> Enriched:
        call = {"workspace": workspace, "persona": persona, "memory": memory, "evidence_tokens": evidence_tokens}
        self.calls.append({"request": dict(request), **call})
        if self.before:
            await self.before()
        if self.failure:
            raise self.failure
        commanded = question_in(request, "/rag")
        assert question == ((user_text(request) or "").strip() if commanded is None else commanded)
        assert question is not None, "the proxy asks the enricher with the question that it found"
        if not question:
            raise ValidationError("The command has no question.")
        documents = tuple(Document(f"d{i}", "a passage", "local", score=0.9) for i in range(self.documents))
        verdict = "local" if documents else "none"
        context = RagContext(
            question,
            documents,
            False,
            1,
            verdict,
            0.6,
            self.degraded,
            timings_ms={"retrieve": 70_000.0, "grade": 2.0},
            memory=self.recalled,
        )
        told = NOTHING_FOUND if tell_none else ""
        return Enriched(inject(request, self.block if documents else told, question), context)


@dataclass
class FakeMemory:
    """Takes every exchange, or fails; `before` is awaited first."""

    exchanges: list[tuple[str, Exchange]] = field(default_factory=list)
    recalled: list[Sequence[str]] = field(default_factory=list)
    failure: Exception | None = None
    before: Callable[[], Awaitable[None]] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def remember(self, exchange: Exchange, *, workspace: str, recalled: Sequence[str] = ()) -> Remembered:
        if self.before:
            await self.before()
        self.exchanges.append((workspace, exchange))
        self.recalled.append(recalled)
        self.news.set()
        if self.failure:
            raise self.failure
        return Remembered(True)


class FakePreferences:
    """The setting `prompts` of workspaces; `outage` makes them unreadable. Counts how long requests would wait."""

    def __init__(self, **prompts: Prompts) -> None:
        self.prompts = prompts
        self.outage = ""
        self.waits: list[float] = []

    async def at_hand(self, workspace: str, *, seconds: float) -> tuple[Preferences, str]:
        self.waits.append(seconds)
        return await self.of(workspace), self.outage

    async def of(self, workspace: str) -> Preferences:
        return Preferences(1000, 200, 5, None, "similarity", prompts=self.prompts.get(workspace, "command"))


class FakeHost:
    """A host whose models all have the same limit and window."""

    def __init__(self, limit: int | None, window: int | None = 4096, failure: bool = False) -> None:
        self.limit, self.reported, self.failure = limit, window, failure
        self.windows = ModelWindows()

    async def version(self) -> str:
        return "0.17.4"

    async def models(self) -> frozenset[str]:
        return frozenset()

    async def context_length(self, model: str) -> int | None:
        if self.failure:
            raise ServiceUnavailable("ollama", "silent")
        return self.limit

    async def window(self, model: str, *, load: bool = True) -> int | None:
        return self.reported


def faked(settings: Settings, **members: Any) -> Container:
    """A container whose use cases are fakes."""
    fakes = {
        "enricher": FakeEnricher(),
        "upstream": FakeHost(None, None),
        "memory": FakeMemory(),
        "preferences": FakePreferences(),
    }
    return Container(settings, **{**fakes, **members})


@dataclass
class Reply:
    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head.split(b" ", 2)[1])

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return Recorded(self.head, b"").headers

    def header(self, name: bytes) -> list[bytes]:
        return Recorded(self.head, b"").header(name)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Proxied:
    """The proxy, listening, with what stands behind it."""

    port: int
    ollama: StubOllama
    container: Container

    @property
    def enricher(self) -> Any:
        return self.container.enricher

    @property
    def memory(self) -> Any:
        return self.container.memory

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def raw(self, request: bytes) -> bytes:
        """Everything that comes back until the connection ends."""
        reader, writer = await self.open()
        writer.write(request)
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        return answer

    async def ask(self, line: str, body: bytes | None = None, headers: tuple[bytes, ...] = ()) -> Reply:
        """One request; the reply's body without its framing."""
        sent = [line.encode() + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close", *headers]
        if body is not None:
            sent.append(b"Content-Length: %d" % len(body))
        head, _, rest = (await self.raw(b"\r\n".join(sent) + b"\r\n\r\n" + (body or b""))).partition(b"\r\n\r\n")
        reply = Reply(head, rest)
        if reply.header(b"transfer-encoding") == [b"chunked"]:
            reply.body = unchunked(rest)
        return reply

    async def post(self, path: str, payload: Any, headers: tuple[bytes, ...] = ()) -> Reply:
        return await self.ask(f"POST {path}", json.dumps(payload).encode(), headers)


def unchunked(raw: bytes) -> bytes:
    """The content of a chunked body; fails when its end is missing."""
    content = b""
    while True:
        size, _, raw = raw.partition(b"\r\n")
        if int(size, 16) == 0:
            assert raw == b"\r\n"
            return content
        content += raw[: int(size, 16)]
        raw = raw[int(size, 16) + 2 :]


def own_app() -> FastAPI:
    app = FastAPI()

    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ok": True}

    @app.post("/v1/enrich")
    async def enrich() -> dict[str, str]:
        return {"from": "cragside"}

    return app


@asynccontextmanager
async def listening(application: Any, protocol: Callable[..., Any] = HttpToolsProtocol) -> AsyncIterator[int]:
    config = uvicorn.Config(
        application, http="httptools", ws="none", log_level="critical", server_header=False, date_header=False
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)
