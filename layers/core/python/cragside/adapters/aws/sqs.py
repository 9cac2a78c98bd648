"""A FIFO queue of SQS as the index queue."""

import asyncio
import hashlib
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from typing_extensions import override

from cragside.adapters.aws.client import AwsClient
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Task
from cragside.domain.names import store_name
from cragside.ports.index_queue import DeadLetter, Delivery, PushQueue, QueueStats

SqsMessage = Mapping[str, Any]

_LONGEST_GROUP = 128
_REASON_CHARACTERS = 1000
_NO_REASON = "SQS gave the task up: no worker finished it, and none said why."
_FIELDS = ("workspace", "document_id", "content_hash", "part", "stage")


def body_of(task: Task) -> str:
    """Return the body of a task's message."""
    return json.dumps({name: getattr(task, name) for name in _FIELDS}, separators=(",", ":"))


def task_of(body: str) -> Task:
    """Return the task of a message. Raises `ValidationError` that says what is wrong with the message."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise ValidationError("The message is not JSON.") from None
    if not isinstance(given, dict) or (missing := [name for name in _FIELDS if name not in given]):
        lacks = ", ".join(missing) if isinstance(given, dict) else "all fields of a task"
        raise ValidationError(f"The message lacks {lacks}.")
    texts = all(isinstance(given[name], str) and given[name] for name in _FIELDS if name != "part")
    numbered = type(given["part"]) is int and 0 <= given["part"] < 2**31
    if not texts or not numbered or given["stage"] not in ("embed", "enrich"):
        raise ValidationError("The message's fields are not those of a task.")
    # A message may be older than the rules for workspace names.
    return Task(store_name(given["workspace"]), *(given[name] for name in _FIELDS[1:]))


def entry_of(task: Task, number: int, call: str) -> dict[str, str]:
    """Return the entry of a task in a batch. `call` is unique to the call that sends the batch."""
    group = task.group
    return {
        "Id": str(number),
        "MessageBody": body_of(task),
        "MessageGroupId": group if len(group) <= _LONGEST_GROUP and group.isascii() else _sha256(group),
        "MessageDeduplicationId": _sha256(f"{task.key}/{call}"),
    }


def dead_message(body: str, receipt: str, reason: str, attempts: int) -> dict[str, Any]:
    """Return the arguments that send a message to the dead-letter queue."""
    return {
        "MessageBody": body or "{}",  # SQS refuses empty messages
        # Each has a group of its own: of one group, only one batch at a time could be read.
        "MessageGroupId": _sha256(receipt),
        "MessageDeduplicationId": _sha256(receipt),
        "MessageAttributes": {
            "reason": {"DataType": "String", "StringValue": reason[:_REASON_CHARACTERS] or _NO_REASON},
            "attempts": {"DataType": "Number", "StringValue": str(attempts)},
        },
    }


def dead_letter_of(message: SqsMessage) -> DeadLetter | None:
    """Return the dead letter of a message; None if the message holds no task."""
    try:
        task = task_of(message["Body"])
    except ValidationError:
        return None
    system, given = message.get("Attributes", {}), message.get("MessageAttributes", {})
    at = datetime.fromtimestamp(int(system.get("SentTimestamp", 0)) / 1000, UTC)
    return DeadLetter(
        message["MessageId"],
        task,
        given.get("reason", {}).get("StringValue", _NO_REASON),
        int(given.get("attempts", {}).get("StringValue") or system.get("ApproximateReceiveCount", 0)),
        at.isoformat(timespec="milliseconds"),
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# Limits of SQS: entries in a batch, seconds of a long poll, seconds that a message can be invisible.
_BATCH, _LONGEST_WAIT, _LONGEST_DELAY = 10, 20, 43_200
# Dead letters are read by receiving them. They are given back at once, or reappear after this time.
_PEEK_SECONDS = 30
_MOST_DEAD = 1000
_READ_SECONDS = 25
_REFUSED = ("AccessDenied", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidAccessKeyId", "KmsAccessDenied")

_log = logging.getLogger("cragside")

Result = TypeVar("Result")


class SqsQueue(PushQueue):
    """Tasks in the FIFO queue `url`; dead letters in the queue that its redrive policy names.

    - A message waits behind the earlier ones of its group, retries included.
    - If equal tasks wait, those received together are merged; others run twice, which does no harm. SQS' own
      deduplication would drop a task that is sent again within five minutes, so it only covers retries of one call.
    - SQS counts attempts itself, so `put_off` counts one as well.
    - `discard` does nothing. Looking for a document's messages would hide the dead letters of all others meanwhile. The
      tasks are void and end when a worker receives them.
    - `stats` are approximate, and SQS cannot count those of one workspace.
    """

    def __init__(self, url: str, *, lease_seconds: int = 120) -> None:
        self._url = url
        self._lease_seconds = lease_seconds
        self._aws = AwsClient("sqs", "RAG_QUEUE_URL", component="queue", read_seconds=_READ_SECONDS)
        self._dead_url: str | None = None
        self._in_hand: set[str] = set()

    @override
    async def send(self, tasks: Sequence[Task]) -> None:
        if tasks:
            await self._do(lambda client: self._send(client, tasks))

    @override
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        return await self._do(lambda client: self._receive(client, min(limit, _BATCH), wait))

    @override
    async def extend(self, delivery: Delivery) -> None:
        await self._hide(delivery.receipt, self._lease_seconds)

    @override
    async def finish(self, delivery: Delivery) -> None:
        await self._do(lambda client: self._delete(client, delivery.receipt))

    @override
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        self._in_hand.discard(delivery.receipt)
        await self._hide(delivery.receipt, min(math.ceil(delay), _LONGEST_DELAY))

    @override
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        await self.retry(delivery, delay=delay)

    @override
    async def bury(self, delivery: Delivery, reason: str) -> None:
        body = body_of(delivery.task)
        await self._do(lambda client: self._bury(client, body, delivery.receipt, reason, delivery.attempt))

    @override
    async def accept(self, body: str, receipt: str, attempt: int) -> Delivery | None:
        try:
            return Delivery(task_of(body), attempt, receipt)
        except ValidationError as error:
            reason = error.message
        await self._do(lambda client: self._bury(client, body, receipt, reason, attempt))
        return None

    @override
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Dead letters, latest first, among the thousand that are read at most."""

        def dead(client: Any) -> list[DeadLetter]:
            with self._dead_letters(client, workspace) as letters:
                found = [letter for letter, _ in letters]
            return sorted(found, key=lambda letter: letter.at, reverse=True)[:limit]

        return await self._do(dead)

    @override
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        def revive(client: Any) -> int:
            count = 0
            with self._dead_letters(client, workspace, document_id) as letters:
                for letter, message in letters:
                    self._send(client, [letter.task])
                    client.delete_message(
                        QueueUrl=self._dead_letter_url(client), ReceiptHandle=message["ReceiptHandle"]
                    )
                    count += 1
            return count

        return await self._do(revive)

    @override
    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        pass

    @override
    def leads(self) -> bool:
        return True  # for any number of processes: no lock says which of them is the first

    @override
    async def stats_of(self, workspace: str) -> QueueStats | None:
        return None

    @override
    async def stats(self) -> QueueStats:
        def stats(client: Any) -> QueueStats:
            waiting, hidden, late = self._counts(client, self._url)
            return QueueStats(waiting + late, hidden, sum(self._counts(client, self._dead_letter_url(client))))

        return await self._do(stats)

    @override
    async def close(self) -> None:
        """Give back the tasks in hand, and close connections."""
        receipts, self._in_hand = self._in_hand, set()
        for receipt in receipts:
            try:
                await self._hide(receipt, 0)
            except ServiceUnavailable as error:
                _log.warning("A task comes back only when its lease has run out: %s", error.message)
        self._aws.close()

    def _send(self, client: Any, tasks: Sequence[Task]) -> None:
        call = uuid.uuid4().hex
        for start in range(0, len(tasks), _BATCH):
            entries = [entry_of(task, number, call) for number, task in enumerate(tasks[start : start + _BATCH])]
            if failed := client.send_message_batch(QueueUrl=self._url, Entries=entries).get("Failed"):
                raise ServiceUnavailable("queue", f"SQS did not take {len(failed)} tasks ({failed[0].get('Code')}).")

    def _receive(self, client: Any, limit: int, wait: float) -> list[Delivery]:
        messages = client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=limit,
            WaitTimeSeconds=min(math.ceil(wait), _LONGEST_WAIT),
            VisibilityTimeout=self._lease_seconds,
            AttributeNames=["ApproximateReceiveCount"],
        ).get("Messages", [])
        deliveries: dict[str, Delivery] = {}
        for message in messages:
            receipt, attempt = message["ReceiptHandle"], int(message["Attributes"]["ApproximateReceiveCount"])
            try:
                task = task_of(message["Body"])
            except ValidationError as error:
                self._bury(client, message["Body"], receipt, error.message, attempt)
                continue
            if task.key in deliveries:
                self._delete(client, receipt)
                continue
            deliveries[task.key] = Delivery(task, attempt, receipt)
            self._in_hand.add(receipt)
        return list(deliveries.values())

    def _bury(self, client: Any, body: str, receipt: str, reason: str, attempts: int) -> None:
        # A crash between the two calls leaves the message in both queues, never in none.
        client.send_message(QueueUrl=self._dead_letter_url(client), **dead_message(body, receipt, reason, attempts))
        self._delete(client, receipt)

    def _delete(self, client: Any, receipt: str) -> None:
        self._in_hand.discard(receipt)  # even if deleting fails: then the message comes again by itself
        client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)

    async def _hide(self, receipt: str, seconds: int) -> None:
        await self._do(
            lambda client: client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )
        )

    @contextmanager
    def _dead_letters(
        self, client: Any, workspace: str | None, document_id: str | None = None
    ) -> Iterator[Iterator[tuple[DeadLetter, SqsMessage]]]:
        """The matching dead letters with their messages. Those that still exist at the end are given back."""
        from botocore.exceptions import ClientError

        seen: list[SqsMessage] = []
        try:
            yield self._matching(client, seen, workspace, document_id)
        finally:
            for message in seen:
                with suppress(ClientError):  # a message that was deleted cannot be given back
                    client.change_message_visibility(
                        QueueUrl=self._dead_letter_url(client),
                        ReceiptHandle=message["ReceiptHandle"],
                        VisibilityTimeout=0,
                    )

    def _matching(
        self, client: Any, seen: list[SqsMessage], workspace: str | None, document_id: str | None
    ) -> Iterator[tuple[DeadLetter, SqsMessage]]:
        while len(seen) < _MOST_DEAD:
            messages = client.receive_message(
                QueueUrl=self._dead_letter_url(client),
                MaxNumberOfMessages=_BATCH,
                WaitTimeSeconds=0,
                VisibilityTimeout=_PEEK_SECONDS,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            ).get("Messages", [])
            if not messages:
                return
            seen.extend(messages)
            for message in messages:
                letter = dead_letter_of(message)
                if letter is None or (workspace or letter.task.workspace) != letter.task.workspace:
                    continue
                if (document_id or letter.task.document_id) == letter.task.document_id:
                    yield letter, message

    def _counts(self, client: Any, url: str) -> list[int]:
        """Waiting, invisible and delayed messages."""
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]
        found = client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return [int(found.get(name, 0)) for name in names]

    def _dead_letter_url(self, client: Any) -> str:
        if self._dead_url is None:
            policy = client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["RedrivePolicy"])
            arn = json.loads(policy.get("Attributes", {}).get("RedrivePolicy", "{}")).get("deadLetterTargetArn")
            if not arn:
                raise ConfigurationError(
                    f"The queue {self._url} has no dead-letter queue. Give it a redrive policy that names one.",
                    variable="RAG_QUEUE_URL",
                )
            account, name = str(arn).split(":")[-2:]
            self._dead_url = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
        return self._dead_url

    async def _do(self, work: Callable[[Any], Result]) -> Result:
        return await asyncio.to_thread(self._done, work)

    def _done(self, work: Callable[[Any], Result]) -> Result:
        with self._aws.connected(self._refusal) as client:
            return work(client)

    def _refusal(self, code: str) -> ConfigurationError | None:
        if code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
            return ConfigurationError(
                f"There is no queue {self._url}, or its dead-letter queue is gone. Check the URL and the region.",
                variable="RAG_QUEUE_URL",
            )
        if code.startswith(_REFUSED):
            return ConfigurationError(
                f"The queue {self._url} may not be used ({code}). Allow sqs:SendMessage, ReceiveMessage, "
                "DeleteMessage, ChangeMessageVisibility, GetQueueAttributes and GetQueueUrl on it and on its "
                "dead-letter queue.",
                variable="RAG_QUEUE_URL",
            )
        return None
