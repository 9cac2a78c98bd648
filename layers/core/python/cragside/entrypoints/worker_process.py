"""The worker beside a server: a process of its own, there only while there is something to do."""

import asyncio
import contextlib
import logging
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from cragside.domain.errors import ServiceUnavailable
from cragside.ports.index_queue import IndexQueue

_POLL_SECONDS = 0.5
_GRACE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 60.0

logger = logging.getLogger("cragside")


class WorkerProcess:
    """Runs `command` while the queue has work; it is to end by itself when there is none.

    The first one, and each one after one that failed, is given `--sweep`, so that it looks for what a crash left. One
    that fails, or cannot be started, is started again after 2, 4, 8 ... 60 seconds.
    """

    def __init__(
        self, queue: IndexQueue, command: Sequence[str], environment: Mapping[str, str], *, poll: float = _POLL_SECONDS
    ) -> None:
        self._queue = queue
        self._command = command
        self._environment = environment
        self._poll = poll

    async def keep(self, *, at_once: bool) -> None:
        """Go on until cancelled, which ends the process, too. With `at_once` one is started without a look."""
        failures, sweep = 0, True
        while True:
            if at_once or await self._has_work():
                at_once = False
                failure = await self._run(["--sweep" if sweep else "--no-sweep"])
                failures, sweep = (failures + 1, True) if failure else (0, False)
                if failures:
                    pause = min(2.0**failures, _LONGEST_PAUSE_SECONDS)
                    logger.warning("The indexing worker %s; the next one starts in %g s", failure, pause)
                    await asyncio.sleep(pause)
            await asyncio.sleep(self._poll)

    async def _has_work(self) -> bool:
        try:
            stats = await self._queue.stats()
        except ServiceUnavailable:
            return False
        return stats.pending + stats.processing > 0

    async def _run(self, arguments: Sequence[str]) -> str:
        """How it failed; "" when it did not."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *arguments,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        except OSError as error:  # no memory, no free process or file: that may pass
            return f"cannot be started ({error.strerror or type(error).__name__})"
        try:
            code = await process.wait()
            # Ctrl-C reaches the worker as well, also while it starts: that is no failure to tell.
            return f"ended with {code}" if code not in (0, 130, -signal.SIGINT) else ""
        finally:
            if process.returncode is None:
                await _ended(process)


@asynccontextmanager
async def kept(process: WorkerProcess, *, at_once: bool) -> AsyncIterator[None]:
    """Keep a worker meanwhile."""
    keeping = asyncio.create_task(process.keep(at_once=at_once))
    try:
        yield
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


async def _ended(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
