"""Tests that a server has a process forked by its parent, is told its exit code, and ends it."""

import asyncio
import errno
import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from cragside.entrypoints.proxy.processes import Forker
from cragside.entrypoints.worker_process import Run

FORK = get_context("fork")
SECONDS = 20


def heard(work: Callable[[Sequence[str]], None], ask: Callable[[Run], Awaitable[object]]) -> object:
    """Run `ask` against a forked server, whose parent is this process, and return the result."""
    ours, theirs = FORK.Pipe(duplex=False)
    with Forker(work) as forker:
        server = FORK.Process(target=_serve, args=(forker, ask, theirs), name="server")
        server.start()
        while wait([forker.awaited(), server.sentinel], SECONDS) == [forker.awaited()]:
            forker.attend()
        server.join(SECONDS)  # its descriptors are closed a moment before it can be joined
        assert not server.is_alive()
    return ours.recv() if ours.poll() else None


def _serve(forker: Forker, ask: Callable[[Run], Awaitable[object]], answer: Connection) -> None:
    async def run() -> None:
        async with asyncio.timeout(SECONDS):
            answer.send(await ask(forker.run))

    asyncio.run(run())


def test_each_process_gets_its_arguments_and_its_exit_code_is_reported() -> None:
    async def ask(run: Run) -> list[int]:
        return [await run(["3"]), await run(["0"])]

    assert heard(lambda arguments: os._exit(int(arguments[0])), ask) == [3, 0]


def test_the_parent_forks_it_and_it_has_default_signal_handlers(tmp_path: Path) -> None:
    def work(arguments: Sequence[str]) -> None:
        handled = signal.getsignal(signal.SIGTERM), signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        (tmp_path / "seen").write_text(f"{os.getppid()} {handled == (signal.SIG_DFL, False)}")

    async def ask(run: Run) -> int:
        return await run([])

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        assert heard(work, ask) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (tmp_path / "seen").read_text() == f"{os.getpid()} True"


def test_a_process_that_cannot_be_forked_is_reported_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused = ForkProcess.start, [True]

    def started(process: ForkProcess) -> None:
        if process.name != "server" and refused:
            refused.pop()
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        start(process)

    async def ask(run: Run) -> list[object]:
        with pytest.raises(BlockingIOError) as caught:
            await run([])
        return [caught.value.strerror, await run([])]

    monkeypatch.setattr(ForkProcess, "start", started)
    assert heard(lambda _: None, ask) == ["Resource temporarily unavailable", 0]


class Lasting:
    """A process that would run for a minute, and writes its number down."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "pid"

    def work(self, _: Sequence[str]) -> None:
        self._file.write_text(str(os.getpid()))
        time.sleep(60)

    async def begun(self, run: Run) -> asyncio.Future[int]:
        running = asyncio.ensure_future(run([]))
        while not self._file.exists() or not self._file.read_text():
            await asyncio.sleep(0.01)
        return running

    def lives(self) -> bool:
        try:
            os.kill(int(self._file.read_text()), 0)
        except ProcessLookupError:
            return False
        return True


def test_cancelling_ends_the_process(tmp_path: Path) -> None:
    lasting = Lasting(tmp_path)

    async def ask(run: Run) -> str:
        running = await lasting.begun(run)
        running.cancel()
        await asyncio.wait([running])
        while lasting.lives():  # the parent would end it later, when it ends itself
            await asyncio.sleep(0.01)
        return "cancelled" if running.cancelled() else "ended"

    assert heard(lasting.work, ask) == "cancelled"


def test_it_ends_with_the_parent_when_its_server_has_died(tmp_path: Path) -> None:
    lasting = Lasting(tmp_path)

    async def ask(run: Run) -> None:
        running = await lasting.begun(run)
        os.kill(os.getpid(), signal.SIGKILL)
        await running

    assert heard(lasting.work, ask) is None
    assert not lasting.lives()
