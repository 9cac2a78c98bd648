"""The Lambda function for indexing: processes batches of tasks from an SQS FIFO queue.

An event can ask for something else: `{"sweep": true}` as a schedule does, or `{"migrate": true}`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, CragsideError, DeadlineExceeded, ProcessingError
from cragside.entrypoints.aws_lambda import runtime as snapshot
from cragside.entrypoints.aws_lambda.runtime import Context, Handler, logger, observe_secrets, observed
from cragside.ports.index_queue import PushQueue
from cragside.settings import load_settings

Answer = dict[str, Any]
Job = Callable[[Container, float], Coroutine[Any, Any, Answer]]

# When less time is left, no task starts, and running tasks are cancelled. They go back to SQS at once.
MARGIN_SECONDS = 10.0
# The outcome of a task, or why SQS must deliver it again.
Outcome = str | Exception
_SETTLED = ("done", "buried", "rejected")
_TOO_LONG = "It takes longer than the function may run."


def job_of(event: Any) -> Job | None:
    """Return the job that an event asks for, None if it asks for none. A job gets the seconds that it may take."""
    asked = [name for name in _JOBS if isinstance(event, Mapping) and event.get(name) is True]
    return _JOBS[asked[0]] if asked else None


async def sweep(container: Container, seconds: float) -> Answer:
    """Queue work that the queue lacks, if it has no tasks. One that runs out of time is no failure: the next goes on.

    Raises `CragsideError` if the queue cannot be used.
    """
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            swept = await container.sweeper.sweep_if_idle()
    except TimeoutError:
        logger.warning("the sweep ran out of time")
        return {"swept": False, "reason": "time"}
    if swept is None:
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
    """Processes the tasks of a batch concurrently.

    A message whose task must be delivered again is reported as failed, with all later messages of its group, which
    would otherwise overtake it. Tasks that failed for good and invalid messages are in the dead-letter queue with the
    reason; they are not reported.
    """

    def __init__(self, container: Container) -> None:
        if not isinstance(container.queue, PushQueue):
            raise ConfigurationError(
                "RAG_QUEUE_URL is not set. Set it to the URL of the queue whose tasks the function processes.",
                variable="RAG_QUEUE_URL",
            )
        self._container = container
        self._queue = container.queue
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
        outcomes = self._runner.run(self._outcomes(records, context)) if records else {}

        def settle(record: SQSRecord) -> str:
            outcome = outcomes[record.message_id]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        processor = SqsFifoPartialProcessor(skip_group_on_error=True)
        # If all fail, the response lists each. An exception would make Lambda repeat settled tasks too.
        processor.raise_on_entire_batch_failure = False
        with processor(records, settle):
            processor.process()
        return dict(processor.response())

    def load(self) -> None:
        """Load everything that a task needs. Snapshots contain no connection."""
        self._runner.run(self._container.prepare())
        snapshot.on_snapshot(before=lambda: self._runner.run(self._container.disconnect()), after=snapshot.reseed)

    async def _outcomes(self, records: list[dict[str, Any]], context: Context) -> dict[str, Outcome]:
        """Return the outcome of each message, by its id."""
        if (seconds := _seconds(context)) <= 0:
            return {record["messageId"]: await self._stopped(record, alone=False) for record in records}
        turns = asyncio.Semaphore(self._container.settings.index_parallel)
        tasks = {record["messageId"]: asyncio.create_task(self._outcome(record, turns)) for record in records}
        _, late = await asyncio.wait(tasks.values(), timeout=seconds)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        outcomes: dict[str, Outcome] = {}
        for record in records:
            message = record["messageId"]
            if tasks[message].cancelled():
                outcomes[message] = await self._stopped(record, alone=len(records) == 1)
            else:
                outcomes[message] = tasks[message].result()
        return outcomes

    async def _stopped(self, record: Mapping[str, Any], *, alone: bool) -> Outcome:
        """Give up a task that was alone and had all the time there was, after its last attempt. Others come again soon.

        A task beside others may have waited for them, for instance for a model that answers one request at a time. The
        queue's visibility timeout is several times the function's.
        """
        with suppress(CragsideError):  # then it comes when that time has passed
            delivery = await self._queue.accept(*_message(record))
            if delivery is None:
                return "rejected"
            if alone and await self._container.attempts.give_up(delivery, _TOO_LONG):
                logger.warning("given up", extra={"task": delivery.task.key, "reason": _TOO_LONG})
                return "buried"
            await self._queue.put_off(delivery, delay=0)
        return DeadlineExceeded("The function's time is up.")

    async def _outcome(self, record: Mapping[str, Any], turns: asyncio.Semaphore) -> Outcome:
        async with turns:
            try:
                return await self._handled(record)
            except CragsideError as error:
                return error
            except Exception as error:
                logger.exception("a message could not be handled")
                return ProcessingError(f"An internal error occurred ({type(error).__name__}).")

    async def _handled(self, record: Mapping[str, Any]) -> Outcome:
        delivery = await self._queue.accept(*_message(record))
        if delivery is None:
            return "rejected"
        # Waiting here for an outage to end would cost money. SQS delivers the task again instead.
        handled = await self._container.attempts.handle(delivery, wait=False)
        logger.info("handled", extra={"task": delivery.task.key, "outcome": handled.outcome, "reason": handled.reason})
        return handled.outcome if handled.outcome in _SETTLED else ProcessingError(handled.reason)


def start() -> Handler:
    """Return the function with the environment's settings. Raises `ConfigurationError`, which ends INIT."""
    function = IndexFunction(Container(load_settings()))
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


def _message(record: Mapping[str, Any]) -> tuple[str, str, int]:
    """Return the body, the receipt, and the number of the attempt."""
    return str(record.get("body") or ""), str(record.get("receiptHandle")), _attempt(record)


def _attempt(record: Mapping[str, Any]) -> int:
    attributes = record.get("attributes")
    count = str(attributes.get("ApproximateReceiveCount", "")) if isinstance(attributes, Mapping) else ""
    return int(count) if count.isdecimal() else 1
