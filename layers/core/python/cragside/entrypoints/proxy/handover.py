"""One listening socket for several processes: the parent accepts, and hands connections to the workers in turn.

With a listening socket for each, the kernel's hash deals them out by chance (100 connections as 58 and 42), and with
one for all, whoever wakes up first takes every connection that waits.
"""

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from types import TracebackType
from typing import Self

_BACKLOG = 2048
# Descriptors or memory have run out: asyncio's own servers wait as long.
_EXHAUSTED_SECONDS = 1.0
# Every worker has some 280 connections waiting already, which keep it busy for longer.
_FULL_SECONDS = 0.1
_MOST_STARTING = 16
# What accompanies a descriptor, since nothing can be sent with no data, and what a worker says when it is ready.
_SIGN = b"\0"

logger = logging.getLogger(__name__)


class Handover:
    """The parent's side: a channel to each worker. To be made before the workers are forked, and closed in the end.

    Clients may connect from the start; they wait until all workers are ready.
    """

    def __init__(self, listening: socket.socket, workers: int, on_ready: Callable[[], None]) -> None:
        self._listening = listening
        self._on_ready = on_ready
        pairs = [socket.socketpair() for _ in range(workers)]
        self._channels = [ours for ours, _ in pairs]
        self._workers_channels = [theirs for _, theirs in pairs]
        for each in (listening, *self._channels, *self._workers_channels):
            each.setblocking(False)
        self._turns = itertools.cycle(self._channels)
        listening.listen(_BACKLOG)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for each in (self._listening, *self._channels, *self._workers_channels):
            each.close()

    def channel(self, number: int) -> socket.socket:
        """For worker `number` to call once, in its own process: what it gets connections from."""
        own = self._workers_channels[number]
        # An end that others hold as well would never be seen to close.
        for each in (self._listening, *self._channels, *self._workers_channels):
            if each is not own:
                each.close()
        return own

    def attend(self, endings: Sequence[int]) -> None:
        """Call `on_ready` once all workers are, and hand over connections until one of these descriptors is readable.

        Then no more are accepted.
        """
        for theirs in self._workers_channels:
            theirs.close()
        with self._listening:
            if not self._workers_ready(endings):
                wait(endings)
                return
            self._on_ready()
            while wait([self._listening, *endings]) == [self._listening]:
                self._accept(endings)

    def _workers_ready(self, endings: Sequence[int]) -> bool:
        """Once all are; false as soon as it is certain that they will not be."""
        return all(wait([channel, *endings]) == [channel] and channel.recv(len(_SIGN)) for channel in self._channels)

    def _accept(self, endings: Sequence[int]) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has left again
        except OSError as error:
            logger.warning("No connection can be accepted for %g s: %s.", _EXHAUSTED_SECONDS, error.strerror)
            wait(endings, _EXHAUSTED_SECONDS)
            return
        with connection:
            # A worker that has no room, or ends, is passed over.
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
    """A worker's side: a protocol of its own for each connection that comes over the channel.

    `on_end` is called when no more can come, since the parent has ended.
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
        """Take connections from now on, and tell the parent."""
        self._read()
        self._channel.send(_SIGN)

    async def close(self) -> None:
        """Take no more; return when those that were taken have their protocols."""
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
        # More are read when these have their protocols, which see to it that there are not too many.
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
        """Whether there is one; otherwise nothing is read for a while.

        What comes for a process that has none left is lost: the kernel closes it.
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
            connection.close()  # the client has left again
