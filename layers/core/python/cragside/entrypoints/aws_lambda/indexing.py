"""Indexing tasks as a Lambda function behind a FIFO queue: a batch in, what failed of it out."""

import asyncio
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, CragsideError, DeadlineExceeded, ProcessingError
from cragside.entrypoints.aws_lambda import snapshot
from cragside.entrypoints.aws_lambda.deadline import Context
from cragside.entrypoints.aws_lambda.observability import Handler, logger, observed
from cragside.ports.index_queue import PushQueue
from cragside.settings import load_settings

# Nothing is begun with less left, and what is not done then is broken off: it comes again.
MARGIN_SECONDS = 10.0

# What became of a task, or why it comes again.
Outcome = str | Exception
_SETTLED = ("done", "buried", "rejected")


class IndexFunction:
    """Does the tasks of a batch at once, on one event loop for the environment's life.

    A message is reported as failed when its task is to come again, and so are all later ones of its group: they would
    pass it. What was given up, and what is no task, is in the dead-letter queue with its reason and is not reported.
    """

    def __init__(self, container: Container) -> None:
        if not isinstance(container.queue, PushQueue):
            raise ConfigurationError(
                "RAG_QUEUE_URL is not set: the function settles its tasks with the queue they come from.",
                variable="RAG_QUEUE_URL",
            )
        self._container = container
        self._queue = container.queue
        self._runner = asyncio.Runner()

    def answer(self, event: Any, context: Context) -> dict[str, Any]:
        """The partial batch response of an event of SQS; of another event nothing is done."""
        records = _records(event)
        outcomes = self._runner.run(self._outcomes(records, context)) if records else {}

        def settle(record: SQSRecord) -> str:
            outcome = outcomes[record.message_id]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        processor = SqsFifoPartialProcessor(skip_group_on_error=True)
        # All may fail: the answer says so for each, where an exception would have Lambda repeat what was settled.
        processor.raise_on_entire_batch_failure = False
        with processor(records, settle):
            processor.process()
        return dict(processor.response())

    def load(self) -> None:
        """Load everything that a task needs, and have a snapshot hold no connection."""
        self._runner.run(self._container.prepare())
        snapshot.on_snapshot(before=lambda: self._runner.run(self._container.disconnect()), after=snapshot.reseed)

    async def _outcomes(self, records: list[dict[str, Any]], context: Context) -> dict[str, Outcome]:
        """What became of each message, by its id."""
        turns = asyncio.Semaphore(self._container.settings.index_parallel)
        tasks = {asyncio.create_task(self._outcome(record, turns)): record["messageId"] for record in records}
        left = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
        done, late = await asyncio.wait(tasks, timeout=max(0.0, left))
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        time_is_up = DeadlineExceeded("The function's time is up.")
        return {message: task.result() if task in done else time_is_up for task, message in tasks.items()}

    async def _outcome(self, record: Mapping[str, Any], turns: asyncio.Semaphore) -> Outcome:
        async with turns:
            try:
                return await self._handled(record)
            except CragsideError as error:
                return error
            except Exception as error:
                logger.exception("a message could not be handled")
                return ProcessingError(f"Something inside failed ({type(error).__name__}).")

    async def _handled(self, record: Mapping[str, Any]) -> Outcome:
        body, receipt = str(record.get("body") or ""), str(record.get("receiptHandle"))
        delivery = await self._queue.accept(body, receipt, _attempt(record))
        if delivery is None:
            return "rejected"
        # To wait here for what is down would be paid for: the task comes again instead.
        handled = await self._container.attempts.handle(delivery, wait=False)
        logger.info("handled", extra={"task": delivery.task.key, "outcome": handled.outcome, "reason": handled.reason})
        return handled.outcome if handled.outcome in _SETTLED else ProcessingError(handled.reason)


def start() -> Handler:
    """The function of this environment's settings. Raises `ConfigurationError`, which ends INIT."""
    function = IndexFunction(Container(load_settings()))
    if snapshot.ahead():
        function.load()
    return observed(function.answer)


def _records(event: Any) -> list[dict[str, Any]]:
    """The messages of an event; what has no id can be neither handled nor reported."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        logger.error("the event is none of SQS")
        return []
    known = [record for record in records if isinstance(record, dict) and isinstance(record.get("messageId"), str)]
    if len(known) < len(records):
        logger.error("%d records have no message id", len(records) - len(known))
    return known


def _attempt(record: Mapping[str, Any]) -> int:
    attributes = record.get("attributes")
    count = str(attributes.get("ApproximateReceiveCount", "")) if isinstance(attributes, Mapping) else ""
    return int(count) if count.isdecimal() else 1
