"""The Lambda function for indexing: messages of an SQS FIFO queue call it when tasks wait.

An event can ask for something else: `{"sweep": true}` as a schedule does, or `{"migrate": true}`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from cragside.application.attempts import LONGEST_PAUSE_SECONDS
from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, CragsideError
from cragside.domain.indexing import Delivery
from cragside.entrypoints.aws_lambda import runtime as snapshot
from cragside.entrypoints.aws_lambda.runtime import (
    Context,
    Handler,
    logger,
    observe_given_up,
    observe_secrets,
    observed,
)
from cragside.ports.task_messages import TaskMessages
from cragside.settings import load_settings

Answer = dict[str, Any]
Job = Callable[[Container, float], Coroutine[Any, Any, Answer]]

# When less time is left, no task starts, and running tasks are cancelled. They go back to the queue at once.
MARGIN_SECONDS = 10.0
_EXTEND_SECONDS = 15.0
# What writes a batch may take longer than what answers a request.
_STATEMENT_SECONDS = 30.0
# So many tasks at once fit into a function's memory.
_AT_ONCE = 10
# How often a message is received before another one takes its place.
RECEIVES = 8
# The group of messages that the function sends itself.
_LOOK_GROUP = "look"
_TOO_LONG = "It takes longer than the function may run."


def job_of(event: Any) -> Job | None:
    """Return the job that an event asks for, None if it asks for none. A job gets the seconds that it may take."""
    asked = [name for name in _JOBS if isinstance(event, Mapping) and event.get(name) is True]
    return _JOBS[asked[0]] if asked else None


async def sweep(container: Container, seconds: float) -> Answer:
    """Queue work that the queue lacks, if it has no tasks. One that runs out of time is no failure: the next goes on.

    Raises `CragsideError` if the queue cannot be used.
    """
    if container.inbox is not None:
        waiting = await container.inbox.workspaces()
        await container.inbox.call(waiting)
        return {"swept": True, "workspaces": len(waiting), "tasks": 0}
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            swept = await container.sweeper.sweep_if_idle()
    except TimeoutError:
        logger.warning("the sweep ran out of time")
        return {"swept": False, "reason": "time"}
    if swept is None:
        # The message about a task may have been lost.
        await messages_of(container).send([_LOOK_GROUP])
        return {"swept": False, "reason": "busy"}
    logger.info("swept", extra={"workspaces": swept.workspaces, "tasks": swept.tasks})
    return {"swept": True, "workspaces": swept.workspaces, "tasks": swept.tasks}


async def migrate(container: Container, seconds: float) -> Answer:
    """Do what `cragside migrate` does: from inside a network that no other program of cragside is in.

    Raises `CragsideError` if the database cannot be used, or its role may not make tables.
    """
    from cragside.composition.databases import migrate as make_tables

    if container.database is None:
        raise ConfigurationError("POSTGRES_URI is not set. There is nothing to migrate.", variable="POSTGRES_URI")
    settings = container.settings
    embedder = await container.open_embedder(settings.embedding_model)
    made = await make_tables(container.database, embedder, age=settings.graph_storage == "PGGraphStorage")
    return {"migrated": True, "made": made}


_JOBS: dict[str, Job] = {"sweep": sweep, "migrate": migrate}


class IndexFunction:
    """Runs the tasks that are due when a message says "look".

    While tasks are left that wait for a retry or for more time, the last message of the batch is reported as failed, so
    that it comes again. If the queue fails, all messages do.
    """

    def __init__(self, container: Container) -> None:
        if container.settings.queue_url is None:
            raise ConfigurationError(
                "RAG_QUEUE_URL is not set. Set it to the URL of the queue whose messages call the function.",
                variable="RAG_QUEUE_URL",
            )
        self._container = container
        self._runner = asyncio.Runner()

    def answer(self, event: Any, context: Context) -> dict[str, Any]:
        """Return the partial batch response to an SQS event, or what a job did. Other events have no effect."""
        try:
            return self._answered(event, context)
        finally:
            observe_secrets(unreadable=self._container.unreadable_secret)

    def _answered(self, event: Any, context: Context) -> dict[str, Any]:
        if (job := job_of(event)) is not None:
            return self._runner.run(job(self._container, _seconds(context)))
        records = _records(event)
        again = self._runner.run(self._looked(records, _seconds(context))) if records else []
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in again]}

    def load(self) -> None:
        """Load everything that a task needs. Snapshots contain no connection."""
        self._runner.run(self._container.prepare())
        snapshot.on_snapshot(before=lambda: self._runner.run(self._container.disconnect()), after=snapshot.reseed)

    async def _looked(self, records: list[dict[str, Any]], seconds: float) -> list[dict[str, Any]]:
        """Run what is due. Return the messages that have to come again."""
        queue, messages, last = self._container.queue, messages_of(self._container), records[-1]
        try:
            await queue.send(messages.tasks_in(str(record.get("body") or "") for record in records))
            shift = Shift(self._container)
            try:
                in_time = await shift.work(seconds)
            finally:
                observe_given_up(shift.given_up)
            if not (await queue.stats()).pending:
                return []
            if (times := received(last)) < RECEIVES:
                await put_off(messages, last, min(2.0**times, LONGEST_PAUSE_SECONDS) if in_time else 0.0)
                return [last]
            # SQS gives a message up that comes too often.
            await messages.send([_LOOK_GROUP])
        except CragsideError as error:
            logger.error("the queue failed", extra={"reason": error.message})
            for record in records:
                await put_off(messages, record, min(2.0 ** min(received(record), 10), LONGEST_PAUSE_SECONDS))
            return records
        return []


class Shift:
    """Takes tasks as long as some are due and there is time, and gives back those that are not done then."""

    def __init__(self, container: Container) -> None:
        self.given_up = 0
        self._attempts = container.attempts
        self._queue = container.queue
        self._parallel = min(container.settings.index_parallel, _AT_ONCE)
        self._in_hand: dict[asyncio.Task[None], Delivery] = {}
        self._begun = 0

    async def work(self, seconds: float) -> bool:
        """Return False if time was up first. Raises `CragsideError` if the queue cannot be used."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        ends, extended = now + seconds, now
        try:
            while now < ends:
                await self._take()
                if not self._in_hand:
                    return True
                timeout = min(ends, extended + _EXTEND_SECONDS) - now
                await asyncio.wait(self._in_hand, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if (now := loop.time()) >= extended + _EXTEND_SECONDS:
                    extended = now
                    await self._extend()
            return False
        finally:
            await self._give_back()

    async def _extend(self) -> None:
        for delivery in list(self._in_hand.values()):
            try:
                await self._queue.extend(delivery)
            except CragsideError as error:
                logger.warning("a lease could not be renewed", extra={"reason": error.message})

    async def _take(self) -> None:
        if (free := self._parallel - len(self._in_hand)) <= 0:
            return
        try:
            deliveries = await self._queue.receive(limit=free, wait=0)
        except CragsideError as error:
            if not self._in_hand:
                raise
            logger.warning("no further tasks for now", extra={"reason": error.message})
            return
        for delivery in deliveries:
            task = asyncio.create_task(self._handle(delivery))
            self._in_hand[task] = delivery
            task.add_done_callback(lambda ended: self._in_hand.pop(ended, None))
            self._begun += 1

    async def _handle(self, delivery: Delivery) -> None:
        try:
            # Waiting here for an outage to end would cost money. The task comes again instead.
            handled = await self._attempts.handle(delivery, wait=False)
        except ConfigurationError as error:
            logger.error("indexing pauses", extra={"task": delivery.task.key, "reason": error.message})
            with suppress(CragsideError):
                await self._queue.put_off(delivery, delay=LONGEST_PAUSE_SECONDS)
        except Exception:
            logger.exception("a task could not be settled")  # it comes again when its lease ends
        else:
            self.given_up += handled.outcome == "buried"
            said = {"task": delivery.task.key, "outcome": handled.outcome, "reason": handled.reason}
            logger.info("handled", extra=said)

    async def _give_back(self) -> None:
        late = dict(self._in_hand)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for task, delivery in late.items():
            if task.cancelled():
                with suppress(CragsideError):  # then it comes again when its lease ends
                    await self._stopped(delivery)

    async def _stopped(self, delivery: Delivery) -> None:
        """Give up a task that was alone and had all the time there was, after its last attempt. Others come again.

        A task beside others may have waited for them, for instance for a model that answers one request at a time.
        """
        if self._begun > 1:
            await self._queue.put_off(delivery, delay=0)
        elif await self._attempts.give_up(delivery, _TOO_LONG):
            self.given_up += 1
            logger.warning("given up", extra={"task": delivery.task.key, "reason": _TOO_LONG})
        else:
            await self._queue.retry(delivery, delay=0)


def start() -> Handler:
    """Return the function with the environment's settings. Raises `ConfigurationError`, which ends INIT."""
    settings = load_settings()
    settings = settings.model_copy(update={"postgres_seconds": settings.postgres_seconds or _STATEMENT_SECONDS})
    return started(IndexFunction(Container(settings)))


def started(function: IndexFunction) -> Handler:
    """Return the handler of a function, which loads everything first if INIT runs ahead of any request."""
    if snapshot.ahead():
        function.load()
    return observed(function.answer)


def _seconds(context: Context) -> float:
    return context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS


def _records(event: Any) -> list[dict[str, Any]]:
    """Return the messages of an event. A message without an id can be neither processed nor reported."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        logger.error("the event is not from SQS")
        return []
    known = [record for record in records if isinstance(record, dict) and isinstance(record.get("messageId"), str)]
    if len(known) < len(records):
        logger.error("%d records have no message id", len(records) - len(known))
    return known


async def put_off(messages: TaskMessages, record: Mapping[str, Any], seconds: float) -> None:
    """Have a message that is reported as failed come again after so many seconds."""
    with suppress(CragsideError):  # then it comes when the queue's visibility timeout has passed
        await messages.hide(str(record.get("receiptHandle")), seconds=seconds)


def messages_of(container: Container) -> TaskMessages:
    """Return the messages. Raises `ConfigurationError` without a queue."""
    if container.messages is None:
        raise ConfigurationError("RAG_QUEUE_URL is not set.", variable="RAG_QUEUE_URL")
    return container.messages


def received(record: Mapping[str, Any]) -> int:
    """Return how often a message has come."""
    attributes = record.get("attributes")
    count = str(attributes.get("ApproximateReceiveCount", "")) if isinstance(attributes, Mapping) else ""
    return int(count) if count.isdecimal() else 1
