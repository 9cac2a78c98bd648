"""Runs several server processes on one listening socket: the parent accepts connections and hands them over in turn.

If each worker had a listening socket, the kernel would distribute connections at random (100 as 58 and 42). If they
shared one, the first worker to wake up would take every waiting connection."""

import asyncio
import gc
import itertools
import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar, cast

from cragside.domain.errors import ConfigurationError, ProcessingError

_GRACE_SECONDS = 10
STOPPING = (signal.SIGINT, signal.SIGTERM)
Argument = TypeVar("Argument")
_BACKLOG = 2048
# How long to wait when descriptors or memory have run out, as asyncio's own servers do.
_EXHAUSTED_SECONDS = 1.0
# How long to wait when all workers' channels are full: each has some 280 connections waiting.
_FULL_SECONDS = 0.1
_MOST_STARTING = 16
# The data sent with each descriptor, as some data is required. Workers also send it when they are ready.
_SIGN = b"\0"
logger = logging.getLogger(__name__)


def supervise(count: int, work: Callable[[int], None], attend: Callable[[Sequence[int]], object] = wait) -> None:
    """Run `work(number)` in `count` forked processes until SIGINT or SIGTERM ends them all.

    Meanwhile this process runs `attend(endings)`, which returns once one of these descriptors is readable. The forked
    processes share imported modules. If a worker ends by itself, the others are ended and `ProcessingError` is raised:
    a service manager may then start the server again.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise ConfigurationError("This system cannot fork processes; leave --workers at 1.")
    fork = multiprocessing.get_context("fork")
    # Garbage collection writes to every object that it visits. Memory that a child writes to is no longer shared.
    gc.freeze()
    workers: list[ForkProcess] = []
    stopped = False
    waiting, waking = socket.socketpair()

    def stop(*_: Any) -> None:
        nonlocal stopped
        stopped = True
        for worker in workers:
            worker.terminate()
        waking.send(b"\0")

    previous = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        with signals_held() as mask:
            for number in range(count):
                worker = fork.Process(target=begin, args=(work, number, mask), name=f"cragside-{number}")
                worker.start()
                workers.append(worker)
        attend([waiting.fileno(), *(worker.sentinel for worker in workers)])
    finally:
        end(workers)
        for number, handler in previous.items():
            signal.signal(number, handler)
        waiting.close()
        waking.close()
    if not stopped:
        raise ProcessingError("A worker ended unexpectedly; its messages are above.")


@contextmanager
def signals_held() -> Iterator[set[signal.Signals]]:
    """Hold signals back while a process is forked, which must not run its parent's handlers.

    Yields what `begin` takes. When the signals arrive, the parent knows of all processes that it has forked.
    """
    mask = cast(set[signal.Signals], signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING))
    try:
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def begin(work: Callable[[Argument], None], argument: Argument, mask: Iterable[int]) -> None:
    """Run `work(argument)` in a forked process, without the parent's signal handlers."""
    for stopping in STOPPING:
        signal.signal(stopping, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    work(argument)


def end(processes: Sequence[ForkProcess]) -> None:
    """End the processes, by force those that take longer than ten seconds."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_GRACE_SECONDS)
        process.kill()
        process.join()


class Forker(AbstractContextManager["Forker"]):
    """Runs `work(arguments)` in a process of its own, one at a time. Make it before the servers are forked."""

    def __init__(self, work: Callable[[Sequence[str]], None]) -> None:
        self._work = work
        self._ours, self._servers = multiprocessing.Pipe()
        self._process: ForkProcess | None = None

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            end([self._process])
        self._ours.close()
        self._servers.close()

    async def run(self, arguments: Sequence[str]) -> int:
        """The server's side: have a process forked, and return its exit code. Cancelling this ends the process.

        Only one server may call this. Raises `OSError` if no process can be forked.
        """
        self._servers.send(arguments)
        started = await self._answer()
        if isinstance(started, OSError):
            raise started
        try:
            return int(await self._answer())
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                os.kill(started, signal.SIGTERM)
            raise

    async def _answer(self) -> Any:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._servers.fileno(), arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(self._servers.fileno())
        return self._servers.recv()

    def awaited(self) -> int:
        """The parent's side: the descriptor that is readable when `attend` has something to do."""
        return self._ours.fileno() if self._process is None else self._process.sentinel

    def attend(self) -> None:
        """The parent's side: fork the process that was asked for, or report the end of the last one."""
        if self._process is None:
            self._start(self._ours.recv())
            return
        self._process.join()
        self._ours.send(self._process.exitcode)
        self._process = None

    def _start(self, arguments: Sequence[str]) -> None:
        with signals_held() as mask:
            process = multiprocessing.get_context("fork").Process(target=begin, args=(self._work, arguments, mask))
            try:
                process.start()
            except OSError as error:  # no memory or process is free, which may pass
                self._ours.send(error)
                return
        self._process = process
        self._ours.send(process.pid)


class Handover(AbstractContextManager["Handover"]):
    """The parent's side: a channel to each worker. Make it before the workers are forked.

    Clients may connect from the start. They wait until all workers are ready.
    """

    def __init__(self, listening: socket.socket, workers: int, on_ready: Callable[[], None]) -> None:
        self._listening = listening
        self._on_ready = on_ready
        pairs = [socket.socketpair() for _ in range(workers)]
        self._channels = [ours for ours, _ in pairs]
        self._workers_channels = [theirs for _, theirs in pairs]
        self._all = (listening, *self._channels, *self._workers_channels)
        for each in self._all:
            each.setblocking(False)
        self._turns = itertools.cycle(self._channels)
        listening.listen(_BACKLOG)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close everything. Each process with a copy has to: a channel is closed when nobody has it open."""
        for each in self._all:
            each.close()

    def channel(self, number: int) -> socket.socket:
        """The channel from which worker `number` gets connections. The worker calls this once, in its own process."""
        own = self._workers_channels[number]
        # If other processes held an end too, nobody would notice that it is closed.
        for each in self._all:
            if each is not own:
                each.close()
        return own

    def attend(self, endings: Sequence[int], forker: Forker | None = None) -> None:
        """Call `on_ready` once all workers are ready. Hand over connections until one of `endings` is readable.

        Meanwhile `forker` forks the processes that a worker asks for.
        """
        for theirs in self._workers_channels:
            theirs.close()
        with self._listening:
            # A worker that ends, or cannot start, closes its channel.
            if not all(wait([each, *endings]) == [each] and each.recv(len(_SIGN)) for each in self._channels):
                wait(endings)
                return
            self._on_ready()
            while True:
                others = [] if forker is None else [forker.awaited()]
                ready = wait([self._listening, *others, *endings])
                if not {self._listening, *others}.issuperset(ready):
                    return
                if self._listening in ready:
                    self._accept(endings)
                if forker is not None and others[0] in ready:
                    forker.attend()

    def _accept(self, endings: Sequence[int]) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has left
        except OSError as error:
            logger.warning("No connection can be accepted for %g s: %s.", _EXHAUSTED_SECONDS, error.strerror)
            wait(endings, _EXHAUSTED_SECONDS)
            return
        with connection:
            # Skip workers whose channel is full or closed.
            while not any(_sent(connection, next(self._turns)) for _ in self._channels):
                if wait(endings, _FULL_SECONDS):
                    return


def _sent(connection: socket.socket, channel: socket.socket) -> bool:
    try:
        socket.send_fds(channel, [_SIGN], [connection.fileno()])
    except OSError:
        return False
    return True


class Receiver:
    """A worker's side: makes a protocol for each connection that arrives over the channel.

    Calls `on_end` when the parent has ended, so that no more connections can arrive.
    """

    def __init__(
        self, channel: socket.socket, protocol: Callable[[], asyncio.Protocol], on_end: Callable[[], None]
    ) -> None:
        self._channel = channel
        self._protocol = protocol
        self._on_end = on_end
        self._starting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Start to receive connections, and tell the parent."""
        self._read()
        self._channel.send(_SIGN)

    async def close(self) -> None:
        """Stop receiving, and wait until each received connection is served."""
        self._stop_reading()
        if self._pause is not None:
            self._pause.cancel()
        self._channel.close()
        await asyncio.gather(*self._starting)

    def _read(self) -> None:
        asyncio.get_running_loop().add_reader(self._channel, self._receive)

    def _stop_reading(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)

    def _receive(self) -> None:
        # Further connections wait until these have their protocols, which enforce the limits.
        while len(self._starting) < _MOST_STARTING and self._descriptor_free():
            try:
                sign, descriptors, _, _ = socket.recv_fds(self._channel, len(_SIGN), 1)
            except BlockingIOError:
                return
            if not sign:
                self._stop_reading()
                self._on_end()
                return
            for descriptor in descriptors:
                self._start(socket.socket(fileno=descriptor))

    def _descriptor_free(self) -> bool:
        """Tell if a descriptor is free. If not, pause reading.

        The kernel closes connections that a process without free descriptors receives.
        """
        try:
            os.close(os.dup(self._channel.fileno()))
        except OSError as error:
            logger.warning("No connection can be taken for %g s: %s.", _EXHAUSTED_SECONDS, error.strerror)
            self._stop_reading()
            self._pause = asyncio.get_running_loop().call_later(_EXHAUSTED_SECONDS, self._read)
            return False
        return True

    def _start(self, connection: socket.socket) -> None:
        connection.set_inheritable(False)
        task = asyncio.create_task(self._connect(connection))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        except OSError:
            connection.close()  # the client has left
