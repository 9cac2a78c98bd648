"""One listening socket for several processes: the parent accepts connections and hands them to the workers in turn.

If each worker had a listening socket, the kernel would distribute connections at random (100 as 58 and 42). If they
shared one, the first worker to wake up would take every waiting connection.
"""

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import wait

from cragside.entrypoints.proxy.forking import Forker

_BACKLOG = 2048
# How long to wait when descriptors or memory have run out, as asyncio's own servers do.
_EXHAUSTED_SECONDS = 1.0
# How long to wait when all workers' channels are full: each has some 280 connections waiting.
_FULL_SECONDS = 0.1
_MOST_STARTING = 16
# The data sent with each descriptor, as some data is required. Workers also send it when they are ready.
_SIGN = b"\0"

logger = logging.getLogger(__name__)


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
            if not self._workers_ready(endings):
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

    def _workers_ready(self, endings: Sequence[int]) -> bool:
        """Wait until all workers are ready. False once one of them cannot become ready."""
        return all(wait([channel, *endings]) == [channel] and channel.recv(len(_SIGN)) for channel in self._channels)

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
        """Stop receiving. Return when all received connections have their protocols."""
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
        """Whether a descriptor is free. If not, pause reading.

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
