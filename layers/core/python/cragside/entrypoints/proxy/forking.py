"""A process that the parent of several servers forks when one of them asks for it: it shares the parent's memory."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.context import ForkProcess
from typing import Any

from cragside.entrypoints.proxy.workers import begin, end, signals_held


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
