"""Runs the tasks of the queue, and queues those that the queue lacks."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cragside.application.attempts import LONGEST_PAUSE_SECONDS, Attempts, Handled
from cragside.domain.errors import ConfigurationError, CragsideError, ServiceUnavailable
from cragside.domain.indexing import Delivery
from cragside.domain.names import spoken
from cragside.ports.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from cragside.store.queues.sql import TaskQueue
    from cragside.store.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class Swept:
    """Counts of the workspaces that were looked through, and of the tasks that were queued."""

    workspaces: int = 0
    tasks: int = 0


class Sweeper:
    """Queues the tasks that libraries wait for. What was given up stays given up."""

    def __init__(self, queue: "TaskQueue", workspaces: "Workspaces") -> None:
        self._queue = queue
        self._workspaces = workspaces

    async def sweep(self) -> Swept:
        """Queue what is unfinished in each workspace, also what a killed worker had begun, except tasks in hand.

        A workspace that cannot be opened is logged and left out. Raises `ServiceUnavailable` if the queue takes none.
        """
        workspaces, tasks = 0, 0
        for name in await self._workspaces.names():
            if (sent := await self._sweep(name)) is not None:
                workspaces, tasks = workspaces + 1, tasks + sent
        return Swept(workspaces, tasks)

    async def sweep_if_idle(self) -> Swept | None:
        """Return the same, or None if the queue has tasks: looking through all workspaces can wait."""
        stats = await self._queue.stats()
        return None if stats.pending + stats.processing else await self.sweep()

    async def _sweep(self, name: str) -> int | None:
        try:
            library = (await self._workspaces.open(name)).documents
            tasks = await library.restart(failures=False)
            await (await self._workspaces.open(name)).work.give_back()
        except CragsideError as error:
            logger.warning("Workspace %s is left out for now: %s", spoken(name), error.message_with_place)
            return None
        return await self._queue.restore(tasks)


# How long a call for tasks waits; the shorter wait applies while the caller waits for the end.
_WAIT_SECONDS, _ENDING_SECONDS = 1.0, 0.1
_EXTEND_SECONDS = 15.0
# With pauses of 2, 4, 8 ... seconds that takes as long as a lease.
_HAND_BACKS = 5

logger = logging.getLogger("cragside")


class Worker:
    """Runs tasks, at most `parallel` at once.

    When it is stopped, running tasks get `grace` seconds to end. The others go back to the queue.
    """

    def __init__(
        self,
        queue: "TaskQueue",
        attempts: Attempts,
        sweeper: Sweeper,
        *,
        parallel: int,
        grace: float = 5.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._queue = queue
        self._attempts = attempts
        self._sweeper = sweeper
        self._parallel = parallel
        self._grace = grace
        self._clock = clock
        self._stopping = asyncio.Event()
        self._in_hand: dict[asyncio.Task[None], Delivery] = {}
        self._failure: ConfigurationError | None = None

    def leads(self) -> bool:
        """Return False if another process of this home has the tasks."""
        return self._queue.leads()

    def stop(self) -> None:
        """Take no more tasks, and have `run` return soon."""
        self._stopping.set()

    async def run(
        self,
        *,
        until_idle: bool = False,
        idle_seconds: float = 0.0,
        sweep: bool = True,
        progress: Callable[[Handled], object] | None = None,
    ) -> Counter[str]:
        """Run tasks until stopped, or with `until_idle` until there were none for `idle_seconds`. Count the outcomes.

        With `sweep`, the worker first queues tasks that are missing, as after a crash between accepting a document and
        queueing its tasks. It waits for that until it leads. A `ConfigurationError` is raised with `until_idle` and no
        `idle_seconds`. Otherwise it is logged, and the task is tried again until the configuration is fixed: it may be
        that of one workspace alone.
        """
        tally = Counter[str]()

        def on_handled(handled: Handled) -> None:
            tally[handled.outcome] += 1
            if progress is not None:
                progress(handled)

        extending = asyncio.create_task(self._extend())
        try:
            await self._work(on_handled, until_idle, idle_seconds, sweep)
            if self._in_hand:
                await asyncio.wait(self._in_hand, timeout=self._grace)
        finally:
            extending.cancel()
            await self._give_back()
        if self._failure is not None:
            raise self._failure
        return tally

    async def _work(
        self, on_handled: Callable[[Handled], None], until_idle: bool, idle_seconds: float, sweep: bool
    ) -> None:
        busy_at, failures, first = self._clock.monotonic(), 0, True
        wait = _ENDING_SECONDS if until_idle and not idle_seconds else _WAIT_SECONDS
        while not self._stopping.is_set():
            if (free := self._parallel - len(self._in_hand)) <= 0:
                await self._something_ends()
                continue
            try:
                # The first call does not wait, because the sweep may find more tasks.
                deliveries = await self._queue.receive(limit=free, wait=0 if sweep and first else wait)
                first = False
                if sweep and self._queue.leads():
                    await self._sweeper.sweep()
                    sweep = False
                idle = until_idle and not deliveries and not self._in_hand and not await self._waiting()
            except ServiceUnavailable as error:
                failures += 1
                logger.warning("%s: %s", error.component, error.message_with_place)
                await self._pause(min(2.0**failures, LONGEST_PAUSE_SECONDS))
                continue
            failures = 0
            for delivery in deliveries:
                task = asyncio.create_task(self._handle(delivery, on_handled, ends=until_idle and not idle_seconds))
                self._in_hand[task] = delivery
                task.add_done_callback(lambda ended: self._in_hand.pop(ended, None))
            if not idle:
                busy_at = self._clock.monotonic()
            # Where another worker leads, perhaps a killed server's, this one outlives it to queue what is missing.
            elif self._clock.monotonic() - busy_at >= idle_seconds * (2 if sweep else 1):
                return

    async def _handle(self, delivery: Delivery, on_handled: Callable[[Handled], None], *, ends: bool) -> None:
        while not self._stopping.is_set():
            try:
                if (delay := self._attempts.wait_of(delivery.task)) > 0:
                    # A task in hand would take the place of another workspace's task.
                    await self._queue.put_off(delivery, delay=delay)
                    return
                on_handled(await self._attempts.handle(delivery))
            except ConfigurationError as error:
                if ends:
                    self._failure = error
                    self.stop()
                    return
                # This task and others like it come again: none of them is to blame.
                logger.error("Indexing pauses: %s", error.message)
                continue
            except CragsideError as error:
                logger.warning("%s comes again: the queue failed: %s", delivery.task.key, error.message_with_place)
                await self._hand_back(delivery)
            return

    async def _hand_back(self, delivery: Delivery) -> None:
        """Put a task back that could not be settled once the queue answers. Else it would wait for its lease to end."""
        for failures in range(1, _HAND_BACKS + 1):
            await self._pause(min(2.0**failures, LONGEST_PAUSE_SECONDS))
            with suppress(CragsideError):
                await self._queue.put_off(delivery, delay=0)
                return

    async def _waiting(self) -> bool:
        stats = await self._queue.stats()
        return stats.pending + stats.processing > 0

    async def _something_ends(self) -> None:
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([stopped, *self._in_hand], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()

    async def _pause(self, seconds: float) -> None:
        await self._clock.wait_for(self._stopping, seconds)

    async def _extend(self) -> None:
        while True:
            await self._clock.sleep(_EXTEND_SECONDS)
            for delivery in list(self._in_hand.values()):
                try:
                    await self._queue.extend(delivery)
                except CragsideError as error:
                    logger.warning("A lease could not be renewed: %s", error.message_with_place)

    async def _give_back(self) -> None:
        """Cancel running tasks. The queue hands them out again when this worker is gone."""
        tasks = list(self._in_hand)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
