"""Runs several server processes."""

import gc
import multiprocessing
import signal
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar, cast

from cragside.domain.errors import ConfigurationError, ProcessingError

_GRACE_SECONDS = 10
STOPPING = (signal.SIGINT, signal.SIGTERM)
Argument = TypeVar("Argument")


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
    """Let signals wait while a process is forked, which must not run its parent's handlers. Yields what `begin` takes.

    The parent can end all that it has forked once its signals arrive.
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
