"""Clients try to keep a server busy without asking it anything: real sockets against the real server."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from multiprocessing import get_context
from typing import Any

import pytest

from cragside.composition.process import most_connections
from cragside.entrypoints.proxy import server
from cragside.entrypoints.proxy.clients import Clients, ConnectionLimits
from cragside.entrypoints.proxy.processes import Handover, supervise
from tests.clocks import MovedClock

FORK = get_context("fork")
EXHAUSTED = pytest.mark.attack("exhausted resources")
LIMITS = ConnectionLimits(
    most=40,
    spare=8,
    head_seconds=0.4,
    body_seconds=0.4,
    body_bytes=100,
    keep_alive_seconds=0.4,
    stall_seconds=0.4,
    close_seconds=0.4,
    check_seconds=0.1,
)
GET = b"GET /%b HTTP/1.1\r\nhost: x\r\n\r\n"
POST = b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class Site:
    """An application that waits until it is released, reads what comes, and tells what it has seen."""

    released: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[str] = field(default_factory=list)
    clock: MovedClock = field(default_factory=MovedClock)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        self.seen.append(scope["path"])
        answer = await getattr(self, f"_{scope['path'].strip('/')}")(receive, send)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    async def _healthz(self, *_: Any) -> bytes:
        return b"well"

    async def _waits(self, *_: Any) -> bytes:
        await self.released.wait()
        return b"waited"

    async def _body(self, receive: Any, _: Any) -> bytes:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.seen.append("gone")
                return b""
            size, more = size + len(message["body"]), message["more_body"]
        return str(size).encode()

    async def _much(self, _: Any, send: Any) -> bytes:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000):
            await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
        self.seen.append("gone")
        raise asyncio.CancelledError

    async def _stream(self, _: Any, send: Any) -> bytes:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(4):
            await self.clock.sleep(0.2)
            await send({"type": "http.response.body", "body": b"token", "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        raise asyncio.CancelledError


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    clock: MovedClock

    async def says(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def trickles(self, data: bytes) -> None:
        """Byte by byte, until the server has enough of it."""
        try:
            for byte in data:
                await self.says(bytes([byte]))
                await self.clock.sleep(0.02)
        except ConnectionError:
            return

    async def hears(self) -> bytes:
        """All that the server says until it closes the connection, or resets it since this client still sends."""
        heard = b""
        with suppress(ConnectionError):
            while piece := await self.reader.read(65_536):
                heard += piece
        return heard

    async def hears_until(self, end: bytes) -> bytes:
        return await self.reader.readuntil(end)


Connect = Callable[[], Awaitable[Client]]


@asynccontextmanager
async def serving(site: Site, *, hurried: bool = False, limits: ConnectionLimits = LIMITS) -> AsyncIterator[Connect]:
    """Time stands still for the server, or passes ten times as fast."""
    started = asyncio.Event()
    listening = server.listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    uvicorn = server.Server(site, started.set, Clients(limits, site.clock))
    running = asyncio.create_task(uvicorn.serve(sockets=[listening]))
    async with AsyncExitStack() as stack, asyncio.timeout(20):
        await started.wait()

        async def hurry() -> None:
            while True:
                await asyncio.sleep(0.002)
                site.clock.move(0.02)
                uvicorn._clients.check()

        async def connect() -> Client:
            client = Client(*await asyncio.open_connection("127.0.0.1", port), site.clock)
            stack.callback(client.writer.close)
            return client

        hurrying = [asyncio.create_task(hurry())] if hurried else []
        yield connect
        for task in hurrying:
            task.cancel()
    uvicorn.should_exit = True
    await running


async def status(client: Client) -> int:
    head = await client.hears_until(b"\r\n\r\n")
    return int(head.split()[1])


async def healthy(connect: Connect) -> bool:
    client = await connect()
    await client.says(GET % b"healthz")
    return await status(client) == 200


@EXHAUSTED
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "beginning", [b"", b"GET /healthz HT", b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n"]
)
def test_six_hundred_half_open_connections_leave_health_to_be_asked(workers: int, beginning: bytes) -> None:
    """In processes that may hold 200 descriptors."""
    listening = server.listen("127.0.0.1", 0)
    listening.listen(1024)
    port = listening.getsockname()[1]
    parent = FORK.Process(target=with_few_descriptors, args=(listening, workers))
    parent.start()
    listening.close()
    half_open = []
    try:
        for _ in range(600):
            client = socket.create_connection(("127.0.0.1", port), timeout=10)
            client.send(beginning)
            half_open.append(client)
        for _ in range(workers):
            connection = HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b"well"
    finally:
        for client in half_open:
            client.close()
        parent.terminate()
        parent.join()


def with_few_descriptors(listening: socket.socket, workers: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
    if workers == 1:
        with asyncio.Runner(loop_factory=server.loop_factory()) as runner:
            runner.run(server.Server(Site(), lambda: None).serve(sockets=[listening]))
        return

    def work(number: int) -> None:
        channel = handover.channel(number)
        with asyncio.Runner(loop_factory=server.loop_factory()) as runner:
            runner.run(server.HandedServer(Site(), channel).serve())

    with Handover(listening, workers, lambda: None) as handover:
        supervise(workers, work, handover.attend)


@EXHAUSTED
async def test_the_idlest_connections_make_room_and_no_request_under_way_does() -> None:
    site = Site()
    async with serving(site) as connect:
        idlest = await connect()
        working = await connect()
        await working.says(GET % b"waits")
        while "/waits" not in site.seen:
            await asyncio.sleep(0.01)
        for _ in range(2 * LIMITS.most):
            await connect()
        assert await idlest.hears() == b""
        site.released.set()
        assert await status(working) == 200


@EXHAUSTED
async def test_requests_beyond_the_limit_get_retry_after() -> None:
    site = Site()
    async with serving(site) as connect:
        busy = [await connect() for _ in range(LIMITS.most)]
        for client in busy:
            await client.says(GET % b"waits")
        heads = [client.hears_until(b"\r\n\r\n") for client in busy[LIMITS.most - LIMITS.spare :]]
        for head in await asyncio.gather(*heads):
            assert head.startswith(b"HTTP/1.1 503 ")
            assert b"\r\nretry-after: 5\r\n" in head
            assert b"\r\nconnection: close\r\n" in head
        assert site.seen == ["/waits"] * (LIMITS.most - LIMITS.spare)
        assert await healthy(connect)
        site.released.set()
        assert [await status(client) for client in busy[: LIMITS.most - LIMITS.spare]] == [200] * 32
        again = await connect()
        await again.says(GET % b"waits")
        assert await status(again) == 200


@EXHAUSTED
async def test_all_of_many_concurrent_clients_are_answered() -> None:
    """Each is told that the server is full, and none is dropped before its request is read."""
    site = Site()
    async with serving(site) as connect:
        places = LIMITS.most - LIMITS.spare
        busy = [await connect() for _ in range(places)]
        for client in busy:
            await client.says(GET % b"waits")
        while len(site.seen) < places:
            await asyncio.sleep(0.01)
        address = busy[0].writer.get_extra_info("peername")
        # With no await the server sees none of them before all have come.
        with ExitStack() as stack:
            crowd = [stack.enter_context(socket.create_connection(address)) for _ in range(LIMITS.most)]
            for number, connection in enumerate(crowd):
                connection.sendall(GET % (b"healthz" if number % 8 == 0 else b"waits"))
                connection.setblocking(False)
            answers = [await asyncio.get_running_loop().sock_recv(connection, 12) for connection in crowd]
        assert answers == ([b"HTTP/1.1 200"] + [b"HTTP/1.1 503"] * 7) * (LIMITS.most // 8)
        site.released.set()


async def crowd(connect: Callable[[], Awaitable[Any]], site: Site) -> None:
    """Have clients wait for their answers until the next one is refused."""
    for _ in range(LIMITS.most - LIMITS.spare):
        await (await connect()).says(GET % b"waits")
    while len(site.seen) < LIMITS.most - LIMITS.spare:
        await asyncio.sleep(0.01)


@EXHAUSTED
async def test_a_client_refused_while_sending_can_read_the_reason() -> None:
    site = Site()
    async with serving(site) as connect:
        await crowd(connect, site)
        client = await connect()
        await client.says(POST % 1_000_000)
        await asyncio.sleep(0.1)
        for _ in range(10):
            await client.says(b"x" * 100_000)
        assert (await client.hears()).startswith(b"HTTP/1.1 503 ")
        assert await healthy(connect)
        site.released.set()


@EXHAUSTED
async def test_a_refused_client_that_sends_on_and_on_is_dropped() -> None:
    site = Site()
    # uvicorn's own time for idle connections does not help.
    async with serving(site, hurried=True, limits=replace(LIMITS, keep_alive_seconds=3600)) as connect:
        await crowd(connect, site)
        client = await connect()
        await client.says(POST % 1_000_000_000)
        assert (await client.hears()).startswith(b"HTTP/1.1 503 ")

        async def send_on() -> None:
            while True:
                await client.says(b"x" * 1000)
                await client.clock.sleep(0.02)

        with pytest.raises(ConnectionError):
            await send_on()
        site.released.set()


HEAD = b"GET /healthz HTTP/1.1\r\n" + b"x-filler: 1\r\n" * 100


@EXHAUSTED
@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"GET /hea", b"HTTP/1.1 408 ", id="half a head"),
        pytest.param(HEAD, b"HTTP/1.1 408 ", id="a head byte by byte"),
        pytest.param(b"\r\n" * 500, b"", id="empty lines byte by byte"),
        pytest.param(POST % 9, b"HTTP/1.1 408 ", id="no body"),
        pytest.param(POST % 9999 + b"x" * 900, b"HTTP/1.1 408 ", id="a body byte by byte"),
        pytest.param(CHUNKED + b"1\r\nx\r\n" * 200, b"HTTP/1.1 408 ", id="chunks of one byte"),
        pytest.param(CHUNKED + b"0\r\n" + b"a: b\r\n" * 200, b"HTTP/1.1 408 ", id="a trailer byte by byte"),
    ],
)
async def test_a_slow_client_gets_an_error_and_is_disconnected(said: bytes, told: bytes) -> None:
    site = Site()
    async with serving(site, hurried=True) as connect:
        client = await connect()
        head, blank, rest = said.partition(b"\r\n\r\n") if said.startswith(b"POST") else (b"", b"", said)
        await client.says(head + blank)
        sending = asyncio.create_task(client.trickles(rest))
        answer = await client.hears()
        # A client that goes on sending may lose what it was told with its connection.
        assert answer.startswith(told) or (rest and not answer)
        assert told or not answer
        await sending
        assert await healthy(connect)
        assert site.seen in (["/healthz"], ["/body", "gone", "/healthz"])


@EXHAUSTED
async def test_an_idle_connection_is_closed_despite_bytes_between_requests() -> None:
    async with serving(Site(), hurried=True) as connect:
        silent, talking = await connect(), await connect()
        for client in (silent, talking):
            await client.says(GET % b"healthz")
            assert await status(client) == 200
        sending = asyncio.create_task(talking.trickles(b"\r\n" * 500))
        heard = await asyncio.gather(silent.hears(), talking.hears())
        assert [each.count(b"well") for each in heard] == [1, 1]
        await sending


async def test_a_connection_may_rest_between_requests_for_longer_than_a_head_may_take() -> None:
    async with serving(Site(), hurried=True, limits=replace(LIMITS, keep_alive_seconds=3600)) as connect:
        resting, silent = await connect(), await connect()
        await resting.says(GET % b"healthz")
        assert b"well" in await resting.hears_until(b"0\r\n\r\n")
        await resting.clock.sleep(5 * LIMITS.head_seconds)
        await resting.says(GET % b"healthz")
        assert b"well" in await resting.hears_until(b"0\r\n\r\n")
        assert await silent.hears() == b"", "it sent no head in time"


@EXHAUSTED
async def test_a_refused_clients_body_is_not_waited_for() -> None:
    """It has its answer and holds its connection with what is left of the body."""
    site = Site()
    async with serving(site, hurried=True) as connect:
        client = await connect()
        await client.says(b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 9999\r\n\r\n")
        sending = asyncio.create_task(client.trickles(b"x" * 900))
        assert (await client.hears()).endswith(b"well\r\n0\r\n\r\n")
        await sending


async def test_a_slow_line_is_no_offence() -> None:
    """A body that takes several of the times that it has for its next bytes, but goes on."""
    async with serving(Site(), hurried=True) as connect:
        client = await connect()
        await client.says(POST % 4000)
        for _ in range(40):
            await client.says(b"x" * 100)
            await client.clock.sleep(0.02)
        assert b"\r\n\r\n4\r\n4000" in await client.hears()


async def test_answers_may_take_longer_than_requests() -> None:
    site = Site()
    async with serving(site, hurried=True) as connect:
        thinking, streaming = await connect(), await connect()
        await thinking.says(GET % b"waits")
        await streaming.says(GET % b"stream")
        assert (await streaming.hears_until(b"0\r\n\r\n")).count(b"token") == 4
        site.released.set()
        assert b"waited" in await thinking.hears_until(b"0\r\n\r\n")


@EXHAUSTED
async def test_a_client_that_does_not_read_its_answer_is_let_go() -> None:
    site = Site()
    async with serving(site, hurried=True) as connect:
        client = await connect()
        client.reader._transport.pause_reading()
        await client.says(GET % b"much")
        while "gone" not in site.seen:
            await asyncio.sleep(0.02)
        assert await healthy(connect)


LONG = b"GET /healthz HTTP/1.1\r\n%b\r\n\r\n"


@EXHAUSTED
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(LONG % (b"x: " + b"y" * 70_000), id="a long header"),
        pytest.param(LONG % b"\r\n".join([b"x: " + b"y" * 7000] * 10), id="long headers"),
        pytest.param(LONG % b"\r\n".join([b"x: y"] * 201), id="many headers"),
        pytest.param(b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", id="a long path"),
        pytest.param(b"GET /" + b"x" * 70_000, id="half of a long path"),
        pytest.param(CHUNKED + b"0\r\nx: " + b"y" * 700_000, id="a long trailer"),
        pytest.param(CHUNKED + b"1;" + b"y" * 700_000, id="a long extension of a chunk"),
    ],
)
async def test_heads_are_bounded(said: bytes) -> None:
    site = Site()
    async with serving(site) as connect:
        client = await connect()
        await client.says(said)
        answer = await client.hears()
        # A client that goes on sending may lose what it was told with its connection.
        assert not answer or answer.split()[1] in (b"400", b"431")
        assert "/healthz" not in site.seen


@EXHAUSTED
async def test_pipelined_requests_are_limited() -> None:
    site = Site()
    async with serving(site) as connect:
        client = await connect()
        await client.says(GET % b"waits" * 70)
        assert await client.hears() == b""
        assert site.seen == ["/waits"]
        site.released.set()


async def test_pipelined_requests_are_answered_in_order() -> None:
    site = Site()
    site.released.set()
    async with serving(site, hurried=True) as connect:
        client = await connect()
        await client.says(GET % b"waits" * 20)
        assert (await client.hears()).count(b"waited") == 20


def test_connections_leave_file_descriptors_free(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(most: int) -> int:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
        return most_connections()

    assert [limited(most) for most in (64, 256, 1024, 20_000, resource.RLIM_INFINITY)] == [12, 48, 224, 4096, 4096]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    assert (most_connections(100), most_connections(10_000)) == (100, 224)
