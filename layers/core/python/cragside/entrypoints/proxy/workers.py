"""Runs several server processes."""

import gc
import multiprocessing
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import Any, TypeVar

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
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    workers = [
        fork.Process(target=begin, args=(work, number, mask), name=f"cragside-{number}") for number in range(count)
    ]
    stopped = False
    waiting, waking = socket.socketpair()

    def stop(*_: Any) -> None:
        nonlocal stopped
        stopped = True
        _terminate(workers)
        waking.send(b"\0")

    previous = {number: signal.signal(number, stop) for number in STOPPING}
    try:
        # Signals wait until all workers have started. Then the parent can end them all, and no child runs `stop`.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            for worker in workers:
                worker.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        attend([waiting.fileno(), *(worker.sentinel for worker in workers)])
    finally:
        _terminate(workers)
        for worker in workers:
            if worker.pid is not None:
                worker.join(_GRACE_SECONDS)
                worker.kill()
        for number, handler in previous.items():
            signal.signal(number, handler)
        waiting.close()
        waking.close()
    if not stopped:
        raise ProcessingError("A worker ended unexpectedly; its messages are above.")


def begin(work: Callable[[Argument], None], argument: Argument, mask: Iterable[int]) -> None:
    """Run `work(argument)` in a forked process, without the parent's signal handlers."""
    for stopping in STOPPING:
        signal.signal(stopping, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    work(argument)


def _terminate(workers: list[ForkProcess]) -> None:
    for worker in workers:
        if worker.is_alive():
            worker.terminate()
