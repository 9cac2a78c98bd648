"""The indexing worker of a server: a separate process that runs only while there is work."""

import asyncio
import contextlib
import logging
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import QueueStats
from cragside.ports.clock import SYSTEM_CLOCK, Clock

_POLL_SECONDS = 0.5
_GRACE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 60.0
# glibc gives each thread its own heap, and what a heap has freed is not given back: a tenth of a worker's memory.
_FEW_HEAPS = {"MALLOC_ARENA_MAX": "2"}

logger = logging.getLogger("cragside")

# Runs a worker with these arguments, until it ends.
Run = Callable[[Sequence[str]], Awaitable[int]]


class WorkerProcess:
    """Runs a worker while the queue, by its `stats`, has work. The worker ends when there is none.

    `run` starts it with arguments and returns its exit code. It raises `OSError` if no process can be started, and
    ends the process when it is cancelled.

    The first worker, and each one after a failure, gets `--sweep` and looks for work that a crash left. A worker that
    fails or cannot be started is started again after 2, 4, 8 ... 60 seconds.
    """

    def __init__(self, stats: Callable[[], Awaitable[QueueStats]], run: Run, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._stats = stats
        self._start = run
        self._clock = clock

    async def keep(self, *, at_once: bool) -> None:
        """Run until cancelled, which also ends the process. With `at_once`, the first worker starts without a look."""
        failures, sweep = 0, True
        while True:
            if at_once or await self._has_work():
                at_once = False
                failure = await self._run(["--sweep" if sweep else "--no-sweep"])
                failures, sweep = (failures + 1, True) if failure else (0, False)
                if failures:
                    pause = min(2.0**failures, _LONGEST_PAUSE_SECONDS)
                    logger.warning("The indexing worker %s; the next one starts in %g s", failure, pause)
                    await self._clock.sleep(pause)
            await self._clock.sleep(_POLL_SECONDS)

    async def _has_work(self) -> bool:
        try:
            stats = await self._stats()
        except ServiceUnavailable:
            return False
        return stats.pending + stats.processing > 0

    async def _run(self, arguments: Sequence[str]) -> str:
        """Run a worker, and say how it failed; "" if it did not."""
        try:
            code = await self._start(arguments)
        except OSError as error:  # no memory, process or descriptor is free, which may pass
            return f"cannot be started ({error.strerror or type(error).__name__})"
        # Ctrl-C also reaches the worker, even while it starts. That is not a failure.
        return f"ended with {code}" if code not in (0, 130, -signal.SIGINT) else ""


def executing(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Run a command with further arguments, in a new program with this environment."""

    async def run(arguments: Sequence[str]) -> int:
        process = await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            env={**_FEW_HEAPS, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await _ended(process)

    return run


@asynccontextmanager
async def keeping_worker(process: WorkerProcess, *, at_once: bool) -> AsyncIterator[None]:
    """Keep a worker running while the block is open."""
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
