"""Doing one delivery, and what becomes of one that fails."""

import asyncio
import logging
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from cragside.application.indexer import Indexer
from cragside.domain.errors import ConfigurationError, CragsideError, NotFound, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Stage, Task
from cragside.ports.index_queue import Delivery, IndexQueue

# While no task of the same kind succeeds, the task is hardly to blame: its number of tries is multiplied by this.
OUTAGE_PATIENCE = 10
LONGEST_PAUSE_SECONDS = 60.0

logger = logging.getLogger("cragside")

TaskOutcome = Literal["done", "retried", "buried"]
Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Handled:
    """What became of a delivery, and the reason when it was not done.

    `unavailable` says that something the task needs was down, for which the task is not to blame.
    """

    task: Task
    outcome: TaskOutcome
    attempt: int
    seconds: float
    reason: str = ""
    unavailable: bool = False


class Circuit:
    """Holds tasks back while what they need is down: one at a time tries, after 2, 4, 8 ... 60 seconds."""

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self._failures = 0
        self._worked = False
        self._until = 0.0
        self._trying = asyncio.Lock()
        self._sleep = sleep

    @property
    def down(self) -> bool:
        """Whether failures are its own: nothing has succeeded between the last two, or ever."""
        return self._failures > 1 or not self._worked

    @property
    def left(self) -> float:
        """Seconds until somebody may try: 0 when it is whole, and a second more while somebody is trying."""
        if not self._failures:
            return 0.0
        return max(self._until - time.monotonic(), 1.0 if self._trying.locked() else 0.0)

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Enter when it is whole, or alone when it is this one's turn to try."""
        if self._failures:
            async with self._trying:
                while self._failures and (left := self._until - time.monotonic()) > 0:
                    await self._sleep(left)
                if self._failures:
                    yield
                    return
        yield

    def succeeded(self) -> None:
        """What is needed is there."""
        self._failures, self._worked = 0, True

    def failed(self) -> None:
        """It is down. Those that were on their way when it broke count as one failure."""
        if self._until <= time.monotonic() or not self._failures:
            self._failures += 1
            self._until = time.monotonic() + min(2.0**self._failures, LONGEST_PAUSE_SECONDS)


class Attempts:
    """Does deliveries, one after the other or at once, and tells the queue.

    A task that fails comes again after min(2^attempt, 60) seconds and some chance, `attempts` times in all; then it is
    buried, with `failed` in the library first. Input that no repetition mends is buried at once. While no task of a
    stage succeeds because something is down, tasks wait in hand and have ten times the tries. A configuration that
    cannot work is not held against any task. What is wrong with a workspace's own store, or with its configuration,
    keeps the tasks of that workspace alone waiting.
    """

    def __init__(
        self,
        queue: IndexQueue,
        indexer: Indexer,
        *,
        attempts: int,
        sleep: Sleep = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._queue = queue
        self._indexer = indexer
        self._attempts = attempts
        self._chance = chance
        self._circuits: dict[Stage, Circuit] = {"embed": Circuit(sleep), "enrich": Circuit(sleep)}
        self._stores = defaultdict[tuple[Stage, str], Circuit](lambda: Circuit(sleep))

    def wait_of(self, task: Task) -> float:
        """Seconds for which a task need not be tried, because the store of its workspace is down."""
        return self._store(task).left

    async def handle(self, delivery: Delivery, *, wait: bool = True) -> Handled:
        """Do a task and settle it. Raises `ConfigurationError`, and the queue's own failures, with it unsettled.

        Without `wait` it is tried at once, whether or not what it needs is known to be down.
        """
        began, unavailable = time.monotonic(), False
        try:
            if delivery.attempt > self._attempts * OUTAGE_PATIENCE:
                raise ValidationError(f"Nothing came of {delivery.attempt - 1} tries.")
            if wait:
                # First the store's: whoever waits for a store is in nobody's way.
                async with self._store(delivery.task).passage(), self._circuits[delivery.task.stage].passage():
                    await self._done(delivery.task)
            else:
                await self._done(delivery.task)
        except ConfigurationError:
            raise
        except Exception as error:
            outcome, reason = await self._settled(delivery, error), reason_of(error)
            unavailable = isinstance(error, ServiceUnavailable)
        else:
            await self._queue.finish(delivery)
            outcome, reason = "done", ""
        return Handled(delivery.task, outcome, delivery.attempt, time.monotonic() - began, reason, unavailable)

    async def _done(self, task: Task) -> None:
        try:
            await self._indexer.do(task)
        except (ServiceUnavailable, ConfigurationError) as error:
            self._broken(task, error).failed()
            raise
        self._store(task).succeeded()
        self._circuits[task.stage].succeeded()

    def _store(self, task: Task) -> Circuit:
        return self._stores[task.stage, task.workspace]

    def _broken(self, task: Task, error: Exception) -> Circuit:
        """The circuit that a failure belongs to: that of the workspace, or of what all workspaces need."""
        of_all = isinstance(error, ServiceUnavailable) and error.component != "knowledge_base"
        return self._circuits[task.stage] if of_all else self._store(task)

    async def _settled(self, delivery: Delivery, error: Exception) -> TaskOutcome:
        if delivery.attempt >= self._most(error, self._broken(delivery.task, error)):
            try:
                await self._indexer.failed(delivery.task, reason_of(error))
            except ServiceUnavailable:
                logger.warning("%s is to be given up, which cannot be recorded now", delivery.task.key)
            else:
                await self._queue.bury(delivery, reason_of(error))
                return "buried"
        await self._queue.retry(delivery, delay=self.delay(delivery.attempt))
        return "retried"

    def delay(self, attempt: int) -> float:
        """Seconds until a task comes again: up to a quarter more, so that those that failed together part."""
        return float(min(2.0 ** min(attempt, 10), LONGEST_PAUSE_SECONDS) * (1 + self._chance() / 4))

    def _most(self, error: Exception, circuit: Circuit) -> int:
        """How many tries a task has that failed of this."""
        if isinstance(error, (ValidationError, NotFound)):
            return 0
        return self._attempts * (OUTAGE_PATIENCE if isinstance(error, ServiceUnavailable) and circuit.down else 1)


def reason_of(error: Exception) -> str:
    """What a dead letter says. Messages of others may quote anything."""
    if isinstance(error, ServiceUnavailable):
        return f"{error.component}: {error.message}"
    if isinstance(error, CragsideError):
        return error.message
    return f"Something inside failed ({type(error).__name__})."
