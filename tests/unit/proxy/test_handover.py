import asyncio
import errno
import os
import resource
import select
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import pytest

from cragside.domain.errors import ProcessingError
from cragside.entrypoints.proxy import handover, server
from cragside.entrypoints.proxy.handover import Handover
from cragside.entrypoints.proxy.workers import supervise

pytestmark = [pytest.mark.slow, pytest.mark.interpreter]

FORK = get_context("fork")
LOOPS = [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(server.loop_factory(), id="fastest")]
# Of a worker and what it tells the test: called in its process before it serves.
Before = Callable[[int, Connection], None]


@dataclass
class Workers:
    """Two workers behind an address, and what they and their parent have said."""

    host: str
    port: int
    parent: ForkProcess
    said: Connection
    folder: Path

    def connect(self) -> HTTPConnection:
        connection = HTTPConnection(self.host, self.port, timeout=20)
        connection.connect()
        return connection

    def hears(self) -> str:
        """Return the next line; empty when parent and workers have all ended."""
        assert self.said.poll(20), "Nothing was said."
        try:
            return str(self.said.recv())
        except EOFError:
            return ""


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Callable[..., Workers]]:
    with ExitStack() as stack:

        def start(*arguments: Any, **keywords: Any) -> Workers:
            return stack.enter_context(running(tmp_path, *arguments, **keywords))

        yield start


@contextmanager
def running(
    folder: Path,
    host: str = "127.0.0.1",
    loop_factory: Any = None,
    before: Before | None = None,
    kind: type[socket.socket] = socket.socket,
) -> Iterator[Workers]:
    listening = kind(fileno=server.listen(host, 0).detach())
    listening.listen()  # as `Handover` will, but tests may connect before
    port = listening.getsockname()[1]
    said, saying = FORK.Pipe(duplex=False)
    parent = FORK.Process(target=parent_of_two, args=(listening, saying, folder, loop_factory, before))
    parent.start()
    listening.close()
    saying.close()
    try:
        yield Workers(host, port, parent, said, folder)
    finally:
        parent.terminate()
        parent.join()
        said.close()


def parent_of_two(
    listening: socket.socket, saying: Connection, folder: Path, loop_factory: Any, before: Before | None
) -> None:
    def work(number: int) -> None:
        channel = hand.channel(number)
        if before is not None:
            before(number, saying)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(server.HandedServer(answering(folder), channel).serve())

    with Handover(listening, 2, lambda: saying.send("ready")) as hand:
        try:
            supervise(2, work, hand.attend)
        except ProcessingError:
            saying.send("a worker died")


def answering(folder: Path) -> Any:
    """Every answer is the process that gave it."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        if scope["path"] == "/waits":
            (folder / "begun").touch()
            while not (folder / "released").exists():
                await asyncio.sleep(0.01)
        elif scope["path"] == "/exhausts":
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        body = str(os.getpid()).encode()
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]}
        )
        await send({"type": "http.response.body", "body": body})

    return application


def worker_of(connection: HTTPConnection, path: str = "/") -> int:
    connection.request("GET", path)
    return int(connection.getresponse().read())


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "It did not come to pass."
        time.sleep(0.01)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("loop_factory", LOOPS)
def test_connections_go_to_the_workers_in_turn_and_stay_there(
    workers: Callable[..., Workers], host: str, loop_factory: Any
) -> None:
    two = workers(host, loop_factory)
    connections = [two.connect() for _ in range(40)]
    answers = [worker_of(connection) for connection in connections]
    assert sorted(Counter(answers).values()) == [20, 20]
    assert answers == answers[:2] * 20
    kept = [connection.sock for connection in connections]
    assert [worker_of(connection) for connection in connections] == answers
    assert [connection.sock for connection in connections] == kept


def test_a_silent_client_does_not_block_others(workers: Callable[..., Workers]) -> None:
    two = workers()
    talking, silent = [], []
    for _ in range(5):
        talking.append(two.connect())
        silent.append(two.connect())
    assert len({worker_of(connection) for connection in talking}) == 1
    assert worker_of(silent[0]) != worker_of(talking[0])


def test_a_client_that_connects_before_the_workers_are_ready_is_answered(
    workers: Callable[..., Workers], tmp_path: Path
) -> None:
    def before(number: int, saying: Connection) -> None:
        if number == 1:
            eventually((tmp_path / "released").exists)
            saying.send("the slow one begins")

    two = workers(before=before)
    early = [two.connect() for _ in range(6)]
    for connection in early:
        connection.request("GET", "/")
    assert not two.said.poll(0.5)
    assert select.select([connection.sock for connection in early], [], [], 0)[0] == []
    (tmp_path / "released").touch()
    counted = Counter(int(connection.getresponse().read()) for connection in early)
    assert sorted(counted.values()) == [3, 3]
    assert [two.hears(), two.hears()] == ["the slow one begins", "ready"]


@pytest.mark.parametrize("loop_factory", LOOPS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_refuses_new_connections_and_finishes_running_requests(
    workers: Callable[..., Workers], number: int, loop_factory: Any
) -> None:
    two = workers(loop_factory=loop_factory)
    assert two.hears() == "ready"
    waiting, silent, idle = two.connect(), two.connect(), two.connect()
    worker_of(idle)
    waiting.request("GET", "/waits")
    eventually((two.folder / "begun").exists)
    assert two.parent.pid is not None
    os.kill(two.parent.pid, number)
    eventually(lambda: refused(two))
    assert (silent.sock.recv(1), idle.sock.recv(1)) == (b"", b"")
    (two.folder / "released").touch()
    assert waiting.getresponse().read().isdigit()
    assert two.hears() == ""
    two.parent.join()
    assert two.parent.exitcode == 0


def refused(two: Workers) -> bool:
    try:
        two.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass
    return False


def test_a_killed_worker_ends_the_server_and_its_connections(
    workers: Callable[..., Workers],
) -> None:
    two = workers()
    assert two.hears() == "ready"
    connections = [two.connect() for _ in range(4)]
    stopped = worker_of(connections[0])
    worker_of(connections[1])
    os.kill(stopped, signal.SIGSTOP)  # what comes now waits in its channel
    connections += [two.connect() for _ in range(2)]
    os.kill(stopped, signal.SIGKILL)
    assert [two.hears(), two.hears()] == ["a worker died", ""]
    assert [connection.sock.recv(1) for connection in connections] == [b""] * 6
    assert refused(two)


def test_workers_end_when_their_parent_is_killed(workers: Callable[..., Workers]) -> None:
    two = workers()
    assert two.hears() == "ready"
    connections = [two.connect() for _ in range(2)]
    assert len({worker_of(connection) for connection in connections}) == 2
    two.parent.kill()
    assert two.hears() == ""
    assert [connection.sock.recv(1) for connection in connections] == [b""] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="Another process's descriptors are in Linux' /proc.")
def test_descriptors_are_closed_with_their_connections_and_by_the_parent_at_once(
    workers: Callable[..., Workers],
) -> None:
    two = workers()

    def held(process: int) -> int:
        return len(os.listdir(f"/proc/{process}/fd"))

    first = [two.connect() for _ in range(2)]
    processes = [worker_of(connection) for connection in first]
    parent = two.parent.pid
    assert parent is not None
    before = [held(each) for each in (parent, *processes)]
    more = [two.connect() for _ in range(20)]
    assert {worker_of(connection) for connection in more} == set(processes)
    eventually(lambda: held(parent) == before[0])
    assert [held(each) for each in processes] == [count + 10 for count in before[1:]]
    for connection in more:
        connection.close()
    eventually(lambda: [held(each) for each in (parent, *processes)] == before)


class FirstExhausted(socket.socket):
    """Has no descriptor for the first two connections; counts the calls of `accept` in a file."""

    calls = 0
    counter: Path

    def accept(self) -> Any:
        type(self).calls += 1
        self.counter.write_text(str(self.calls))
        if self.calls <= 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_a_parent_without_descriptors_pauses_and_accepts_later(
    workers: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(handover, "_EXHAUSTED_SECONDS", 0.05)
    FirstExhausted.counter = tmp_path / "accepts"
    two = workers(kind=FirstExhausted)
    assert worker_of(two.connect()) > 0
    time.sleep(0.2)
    assert FirstExhausted.counter.read_text() == "3"


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_worker_without_descriptors_pauses_and_loses_no_connection(
    workers: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loop_factory: Any
) -> None:
    monkeypatch.setattr(handover, "_EXHAUSTED_SECONDS", 0.05)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    duplicate = os.dup

    def until_refused(descriptor: int) -> int:
        try:
            return duplicate(descriptor)
        except OSError:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            (tmp_path / "refused").touch()
            raise

    monkeypatch.setattr(os, "dup", until_refused)
    two = workers(loop_factory=loop_factory)
    connections = [two.connect() for _ in range(2)]
    exhausted = worker_of(connections[0], "/exhausts")
    assert not (tmp_path / "refused").exists()
    assert worker_of(two.connect()) == exhausted
    assert (tmp_path / "refused").exists()


@pytest.fixture
def small_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels with room for few connections."""
    pair = socket.socketpair

    def small() -> tuple[socket.socket, socket.socket]:
        ends = pair()
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        return ends

    monkeypatch.setattr(socket, "socketpair", small)


@pytest.mark.usefixtures("small_channels")
def test_a_worker_that_has_no_room_is_passed_over(workers: Callable[..., Workers]) -> None:
    two = workers()
    stopped, serving = (worker_of(two.connect()) for _ in range(2))
    os.kill(stopped, signal.SIGSTOP)
    try:
        connections = [two.connect() for _ in range(40)]
        for connection in connections:
            connection.request("GET", "/")
        sockets = [connection.sock for connection in connections]
        eventually(lambda: len(select.select(sockets, [], [], 0)[0]) > 20)
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert {int(connection.getresponse().read()) for connection in connections} == {stopped, serving}


@pytest.mark.usefixtures("small_channels")
def test_connections_wait_when_no_worker_has_room(
    workers: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    send = handover._sent
    full: set[int] = set()

    def sent(connection: socket.socket, channel: socket.socket) -> bool:
        taken = send(connection, channel)
        if not taken:
            full.add(channel.fileno())
            if len(full) == 2:
                (tmp_path / "full").touch()
        return taken

    monkeypatch.setattr(handover, "_sent", sent)
    two = workers()
    stopped = [worker_of(two.connect()) for _ in range(2)]
    for each in stopped:
        os.kill(each, signal.SIGSTOP)
    try:
        connections = [two.connect() for _ in range(40)]
        eventually((tmp_path / "full").exists)
    finally:
        for each in stopped:
            os.kill(each, signal.SIGCONT)
    assert {worker_of(connection) for connection in connections} == set(stopped)
