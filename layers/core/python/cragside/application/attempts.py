"""Runs the steps of indexing a document, and decides what happens when one fails."""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cragside.domain.document import DocType
from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    InputRefused,
    NotFound,
    ServiceUnavailable,
    ValidationError,
)
from cragside.domain.indexing import Delivery, Passage, Stage, Task
from cragside.ports.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from cragside.store.queues.sql import TaskQueue
    from cragside.store.workspaces import Workspaces

# As in rag-stack, tier 3 describes the first 8000 characters of a document.
DESCRIBED_CHARACTERS = 8000


class Annotator(Protocol):
    """Describes passages and documents."""

    def tier2(self, text: str) -> dict[str, Any]:
        """`{"entities": [{"text", "label"}], "keywords": [at most 10], "language": ISO 639-1 or None}`; no model."""

    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        """Return the fields of tier 3 for the type, such as `{"summary", "key_entities"}` for a text.

        `by` names what found them. Raises `ServiceUnavailable("annotator", ...)` if the model does not answer. If its
        answer is invalid, rules find the fields instead, and `degraded` says so.
        """


class Indexer:
    """Runs tasks. A task can be repeated, also after an interruption: finished work is not done twice."""

    def __init__(self, workspaces: "Workspaces", annotator: Annotator) -> None:
        self._workspaces = workspaces
        self._annotator = annotator

    async def do(self, task: Task) -> None:
        """Run a task. A task of a deleted document or an old version does nothing.

        Raises `ServiceUnavailable` with the component that failed, and `ValidationError` for text that cannot be
        indexed.
        """
        if task.stage == "embed":
            await (await self._workspaces.open(task.workspace)).work.embed(task)
        else:
            await self._annotate(task)

    async def failed(self, task: Task, reason: str) -> None:
        """Record that a task is given up."""
        await (await self._workspaces.open(task.workspace)).work.failed(task, reason)

    async def _annotate(self, task: Task) -> None:
        part = (await self._workspaces.open(task.workspace)).work
        if not await part.begin_enrichment(task):
            return
        try:
            library = (await self._workspaces.open(task.workspace)).documents
            passages = await library.passages(task.document_id, task.part)
            tier2 = await asyncio.to_thread(lambda: [self._annotator.tier2(passage.text) for passage in passages])
            await part.annotate(task, tier2, await self._tier3(task, passages))
            await part.extend_graph(task)
        except BaseException:  # also when cancelled: the status must not say that work goes on
            with suppress(CragsideError):
                await part.give_back(task)
            raise

    async def _tier3(self, task: Task, passages: Sequence[Passage]) -> Mapping[str, Any] | None:
        """Describe the document by the model, with its first part. Other parts have none: one call a document."""
        if task.part > 0 or not passages:
            return None
        library = (await self._workspaces.open(task.workspace)).documents
        record = await library.document(task.document_id)
        if record is None:
            return None
        text = "\n".join(passage.text for passage in passages)
        return await self._annotator.tier3(record.doc_type, text[:DESCRIBED_CHARACTERS])


# While no task of the same stage succeeds, the task is hardly to blame: it gets this many times the attempts.
OUTAGE_PATIENCE = 10
LONGEST_PAUSE_SECONDS = 60.0

logger = logging.getLogger("cragside")

TaskOutcome = Literal["done", "retried", "buried"]


@dataclass(frozen=True, slots=True)
class Handled:
    """The outcome of a delivery, and the reason if it failed.

    `unavailable` means that something the task needs was down, so the task is not to blame.
    """

    task: Task
    outcome: TaskOutcome
    attempt: int
    seconds: float
    reason: str = ""
    unavailable: bool = False


class Circuit:
    """Holds tasks back while what they need is down. One at a time tries, after 2, 4, 8 ... 60 seconds."""

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, longest_pause: float = LONGEST_PAUSE_SECONDS) -> None:
        self._longest_pause = longest_pause
        self._failures = 0
        self._worked = False
        self._until = 0.0
        self._trying = asyncio.Lock()
        self._clock = clock

    @property
    def down(self) -> bool:
        """Tell if an outage, not the task, explains a failure: several failed in a row, or none ever succeeded."""
        return self._failures > 1 or not self._worked

    @property
    def left(self) -> float:
        """Seconds until a task may try: 0 without an outage, and at least 1 while a task is trying."""
        if not self._failures:
            return 0.0
        return max(self._until - self._clock.monotonic(), 1.0 if self._trying.locked() else 0.0)

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Enter at once without an outage, otherwise alone, when it is this task's turn to try."""
        if self._failures:
            async with self._trying:
                while self._failures and (left := self._until - self._clock.monotonic()) > 0:
                    await self._clock.sleep(left)
                if self._failures:
                    yield
                    return
        yield

    def succeeded(self) -> None:
        """End the outage."""
        self._failures, self._worked = 0, True

    def failed(self) -> None:
        """Begin or prolong the outage. Failures of concurrent tasks count as one."""
        if self._until <= self._clock.monotonic() or not self._failures:
            self._failures += 1
            self._until = self._clock.monotonic() + min(2.0**self._failures, self._longest_pause)


class Attempts:
    """Runs deliveries and settles them in the queue.

    - A failed task is retried after min(2^attempt, 60) seconds plus jitter, `attempts` times in all. Then the library
      records the failure, and the task is buried. Invalid input is buried at once.
    - While something is down and no task of a stage succeeds, tasks wait in hand and get ten times the attempts. One
      whose input is refused by what works does not wait.
    - A wrong configuration does not count as an attempt.
    - A failing store or configuration of one workspace delays only the tasks of that workspace.
    """

    def __init__(
        self,
        queue: "TaskQueue",
        indexer: Indexer,
        *,
        attempts: int,
        clock: Clock = SYSTEM_CLOCK,
        chance: Callable[[], float] = random.random,
        longest_pause: float = LONGEST_PAUSE_SECONDS,
    ) -> None:
        self._queue = queue
        self._indexer = indexer
        self._attempts = attempts
        self._clock = clock
        self._chance = chance
        self._longest_pause = longest_pause
        circuit = partial(Circuit, clock=clock, longest_pause=longest_pause)
        self._circuits: dict[Stage, Circuit] = {"embed": circuit(), "enrich": circuit()}
        self._stores = defaultdict[tuple[Stage, str], Circuit](circuit)

    def wait_of(self, task: Task) -> float:
        """Return seconds for which a task cannot succeed, because the store of its workspace is down."""
        return self._store(task).left

    async def handle(self, delivery: Delivery, *, wait: bool = True) -> Handled:
        """Run a task and settle it. It stays unsettled after a `ConfigurationError` or a failure of the queue.

        Without `wait`, the task is tried at once even if what it needs is known to be down.
        """
        began, unavailable = self._clock.monotonic(), False
        try:
            if delivery.attempt > self._attempts * OUTAGE_PATIENCE:
                raise ValidationError(f"It was tried {delivery.attempt - 1} times without success.")
            if wait:
                # The store's circuit comes first: a task that waits for it blocks no other workspace.
                async with self._store(delivery.task).passage(), self._circuits[delivery.task.stage].passage():
                    await self._done(delivery.task)
            else:
                await self._done(delivery.task)
        except ConfigurationError:
            raise
        except Exception as error:
            outcome, reason = await self._settled(delivery, error), reason_of(error)
            unavailable = _is_outage(error)
        else:
            await self._queue.finish(delivery)
            outcome, reason = "done", ""
        return Handled(delivery.task, outcome, delivery.attempt, self._clock.monotonic() - began, reason, unavailable)

    async def give_up(self, delivery: Delivery, reason: str) -> bool:
        """Bury a task that ran until it was stopped, if that was its last attempt. Otherwise it stays unsettled."""
        return delivery.attempt >= self._attempts and await self._buried(delivery, reason)

    async def _done(self, task: Task) -> None:
        try:
            await self._indexer.do(task)
        except (ServiceUnavailable, ConfigurationError) as error:
            if _is_outage(error) or isinstance(error, ConfigurationError):
                self._broken(task, error).failed()
            raise
        self._store(task).succeeded()
        self._circuits[task.stage].succeeded()

    def _store(self, task: Task) -> Circuit:
        return self._stores[task.stage, task.workspace]

    def _broken(self, task: Task, error: Exception) -> Circuit:
        """Return the circuit of a failure: the workspace's, or that of what all workspaces need."""
        of_all = isinstance(error, ServiceUnavailable) and error.component != "knowledge_base"
        return self._circuits[task.stage] if of_all else self._store(task)

    async def _settled(self, delivery: Delivery, error: Exception) -> TaskOutcome:
        last = delivery.attempt >= self._most(error, self._broken(delivery.task, error))
        if last and await self._buried(delivery, reason_of(error)):
            return "buried"
        await self._queue.retry(delivery, delay=self.delay(delivery.attempt))
        return "retried"

    async def _buried(self, delivery: Delivery, reason: str) -> bool:
        try:
            await self._indexer.failed(delivery.task, reason)
        except ServiceUnavailable:
            logger.warning("%s cannot be given up: its failure cannot be recorded now", delivery.task.key)
            return False
        await self._queue.bury(delivery, reason)
        return True

    def delay(self, attempt: int) -> float:
        """Return seconds until a retry. A jitter of up to a quarter separates tasks that failed together."""
        return float(min(2.0 ** min(attempt, 10), self._longest_pause) * (1 + self._chance() / 4))

    def _most(self, error: Exception, circuit: Circuit) -> int:
        """Return the attempts of a task that failed with this error."""
        if isinstance(error, (ValidationError, NotFound)):
            return 0
        return self._attempts * (OUTAGE_PATIENCE if _is_outage(error) and circuit.down else 1)


def _is_outage(error: Exception) -> bool:
    return isinstance(error, ServiceUnavailable) and not isinstance(error, InputRefused)


def reason_of(error: Exception) -> str:
    """Return the reason in a dead letter. Messages of foreign errors are left out, as they may quote anything."""
    if isinstance(error, ServiceUnavailable):
        return f"{error.component}: {error.message}"
    if isinstance(error, CragsideError):
        return error.message
    return f"Something inside failed ({type(error).__name__})."
