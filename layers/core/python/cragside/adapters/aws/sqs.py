"""A FIFO queue of SQS as the index queue."""

import asyncio
import hashlib
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Task
from cragside.domain.memory_name import store_name
from cragside.ports.index_queue import DeadLetter, Delivery, IndexQueue, QueueStats

# SQS' limits: entries of a batch, seconds of a long poll, of an invisibility, characters of a group.
_BATCH, _LONGEST_WAIT, _LONGEST_DELAY, _LONGEST_GROUP = 10, 20, 43_200, 128
# Dead letters are looked through by receiving them; they are given back at once, or after this.
_PEEK_SECONDS = 30
_MOST_DEAD = 1000
_REASON_CHARACTERS = 1000
_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 3, 25, 3
_UNTOLD = "SQS gave the task up: no worker ended it, or none said why."
_FIELDS = ("workspace", "document_id", "content_hash", "part", "stage")
# Codes of answers that are the same the next time.
_REFUSED = ("AccessDenied", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidAccessKeyId", "KmsAccessDenied")

_log = logging.getLogger("cragside")

Message = Mapping[str, Any]
Result = TypeVar("Result")


def body_of(task: Task) -> str:
    """A task as a message's body."""
    return json.dumps({name: getattr(task, name) for name in _FIELDS}, separators=(",", ":"))


def task_of(body: str) -> Task:
    """The task of a message. Raises `ValidationError` that says what is wrong with it."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise ValidationError("The message is no JSON.") from None
    if not isinstance(given, dict) or (missing := [name for name in _FIELDS if name not in given]):
        lacks = ", ".join(missing) if isinstance(given, dict) else "all fields of a task"
        raise ValidationError(f"The message lacks {lacks}.")
    texts = all(isinstance(given[name], str) and given[name] for name in _FIELDS if name != "part")
    numbered = type(given["part"]) is int and 0 <= given["part"] < 2**31
    if not texts or not numbered or given["stage"] not in ("embed", "enrich"):
        raise ValidationError("The message's fields are not those of a task.")
    # Messages may be older than the rules for names.
    return Task(store_name(given["workspace"]), *(given[name] for name in _FIELDS[1:]))


class SqsQueue(IndexQueue):
    """Tasks in the FIFO queue `url`; dead letters in the queue that its redrive policy names.

    A message waits behind the ones before it in its group, retries included. A task that is sent again while its equal
    waits is dropped when both are received together, and is otherwise done for nothing: SQS' own deduplication would
    swallow what is to be done again within five minutes, and serves the repetitions of one call alone. `stats` is
    SQS' approximation. Tasks and dead letters of a document that is gone stay: they are void and end when a worker
    meets them, and to look for them would hide everybody's dead letters meanwhile. Credentials, region and endpoint
    come from where AWS' own tools take them.
    """

    def __init__(self, url: str, *, lease_seconds: int = 120) -> None:
        self._url = url
        self._lease_seconds = lease_seconds
        self._client: Any = None
        self._dead_url: str | None = None
        self._in_hand: set[str] = set()

    async def send(self, tasks: Sequence[Task]) -> None:
        """Add tasks, in order, ten at a time."""
        if tasks:
            await self._do(lambda client: self._send(client, tasks))

    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        """At most ten tasks; what is no task becomes a dead letter."""
        return await self._do(lambda client: self._receive(client, min(limit, _BATCH), wait))

    async def extend(self, delivery: Delivery) -> None:
        """Keep the message invisible."""
        await self._hide(delivery.receipt, self._lease_seconds)

    async def finish(self, delivery: Delivery) -> None:
        """Delete the message."""
        await self._do(lambda client: self._delete(client, delivery.receipt))

    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        """Let the message come again, and with it its group, after whole seconds. SQS has counted the try."""
        self._in_hand.discard(delivery.receipt)
        await self._hide(delivery.receipt, min(math.ceil(delay), _LONGEST_DELAY))

    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        """As after a failure: SQS counts what it hands out."""
        await self.retry(delivery, delay=delay)

    async def bury(self, delivery: Delivery, reason: str) -> None:
        """Send the task to the dead-letter queue, then delete it: a crash in between leaves it in both."""
        await self.reject(body_of(delivery.task), delivery.receipt, reason, attempts=delivery.attempt)

    async def reject(self, body: str, receipt: str, reason: str, *, attempts: int = 1) -> None:
        """Bury a message, whatever is in it."""
        await self._do(lambda client: self._bury(client, body, receipt, reason, attempts))

    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        """Dead letters, latest first, out of the thousand that are looked through at most."""

        def dead(client: Any) -> list[DeadLetter]:
            with self._dead_letters(client, workspace) as letters:
                found = [letter for letter, _ in letters]
            return sorted(found, key=lambda letter: letter.at, reverse=True)[:limit]

        return await self._do(dead)

    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        """Send the tasks of dead letters again, and delete the letters."""

        def revive(client: Any) -> int:
            count = 0
            with self._dead_letters(client, workspace, document_id) as letters:
                for letter, message in letters:
                    self._send(client, [letter.task])
                    self._delete_letter(client, message)
                    count += 1
            return count

        return await self._do(revive)

    async def discard(self, *, workspace: str, document_id: str) -> None:
        """Nothing: see the class."""

    def leads(self) -> bool:
        """True for any number of processes: no lock says which of them is the first."""
        return True

    async def stats_of(self, workspace: str) -> QueueStats | None:
        """None: SQS counts messages, not whose they are."""
        return None

    async def stats(self) -> QueueStats:
        """About how much there is, of all workspaces."""

        def stats(client: Any) -> QueueStats:
            waiting, hidden, late = self._counts(client, self._url)
            return QueueStats(waiting + late, hidden, sum(self._counts(client, self._dead_letter_url(client))))

        return await self._do(stats)

    async def close(self) -> None:
        """Give back what is in hand, and close the connections."""
        receipts, self._in_hand = self._in_hand, set()
        for receipt in receipts:
            try:
                await self._hide(receipt, 0)
            except ServiceUnavailable as error:
                _log.warning("A task comes back only when its lease has run out: %s", error.message)
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _send(self, client: Any, tasks: Sequence[Task]) -> None:
        call = uuid.uuid4().hex
        for start in range(0, len(tasks), _BATCH):
            entries = [
                {
                    "Id": str(number),
                    "MessageBody": body_of(task),
                    "MessageGroupId": _group(task.group),
                    "MessageDeduplicationId": _sha256(f"{task.key}/{call}"),
                }
                for number, task in enumerate(tasks[start : start + _BATCH])
            ]
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
        reason = reason[:_REASON_CHARACTERS] or _UNTOLD
        client.send_message(
            QueueUrl=self._dead_letter_url(client),
            MessageBody=body,
            # A group of its own: letters of one group could only be looked through one batch at a time.
            MessageGroupId=_sha256(receipt),
            MessageDeduplicationId=_sha256(receipt),
            MessageAttributes={
                "reason": {"DataType": "String", "StringValue": reason},
                "attempts": {"DataType": "Number", "StringValue": str(attempts)},
            },
        )
        self._delete(client, receipt)

    def _delete(self, client: Any, receipt: str) -> None:
        self._in_hand.discard(receipt)  # also if it cannot be deleted: then it comes again by itself
        client.delete_message(QueueUrl=self._url, ReceiptHandle=receipt)

    def _delete_letter(self, client: Any, message: Message) -> None:
        client.delete_message(QueueUrl=self._dead_letter_url(client), ReceiptHandle=message["ReceiptHandle"])

    async def _hide(self, receipt: str, seconds: int) -> None:
        await self._do(
            lambda client: client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=seconds
            )
        )

    @contextmanager
    def _dead_letters(
        self, client: Any, workspace: str | None, document_id: str | None = None
    ) -> Iterator[Iterator[tuple[DeadLetter, Message]]]:
        """The dead letters that are asked for; those that are still there in the end are given back."""
        seen: list[Message] = []
        try:
            yield self._matching(client, seen, workspace, document_id)
        finally:
            for message in seen:
                with _gone_is_fine():
                    client.change_message_visibility(
                        QueueUrl=self._dead_letter_url(client),
                        ReceiptHandle=message["ReceiptHandle"],
                        VisibilityTimeout=0,
                    )

    def _matching(
        self, client: Any, seen: list[Message], workspace: str | None, document_id: str | None
    ) -> Iterator[tuple[DeadLetter, Message]]:
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
                letter = _letter(message)
                if letter is None or (workspace or letter.task.workspace) != letter.task.workspace:
                    continue
                if (document_id or letter.task.document_id) == letter.task.document_id:
                    yield letter, message

    def _counts(self, client: Any, url: str) -> tuple[int, int, int]:
        names = ["", "NotVisible", "Delayed"]
        wanted = [f"ApproximateNumberOfMessages{name}" for name in names]
        found = client.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
        first, second, third = (int(found.get(name, 0)) for name in wanted)
        return first, second, third

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
        self._client = client = self._client or self._connected()
        with self._translated():
            return work(client)

    def _connected(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError as error:
            raise ConfigurationError(
                "RAG_QUEUE_URL needs boto3, which is not installed: pip install 'cragside[aws]'",
                variable="RAG_QUEUE_URL",
            ) from error
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        )
        try:
            return boto3.client("sqs", config=config)
        except (BotoCoreError, ValueError) as error:  # no region, a profile that is not there
            raise ConfigurationError(f"SQS cannot be asked: {_said(error)}.", variable="RAG_QUEUE_URL") from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            CredentialRetrievalError,
            NoCredentialsError,
            PartialCredentialsError,
        )

        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
                raise ConfigurationError(
                    f"There is no queue {self._url}, or its dead-letter queue is gone. Check the URL and the region.",
                    variable="RAG_QUEUE_URL",
                ) from error
            if code.startswith(_REFUSED):
                raise ConfigurationError(
                    f"The queue {self._url} may not be used ({code}). Allow sqs:SendMessage, ReceiveMessage, "
                    "DeleteMessage, ChangeMessageVisibility, GetQueueAttributes and GetQueueUrl on it and on its "
                    "dead-letter queue.",
                    variable="RAG_QUEUE_URL",
                ) from error
            raise ServiceUnavailable("queue", f"SQS failed ({code[:60]}).") from error
        except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
            raise ConfigurationError(
                "SQS needs AWS credentials, and none were found. Give the function a role, or set AWS_PROFILE.",
                variable="RAG_QUEUE_URL",
            ) from error
        except BotoCoreError as error:
            raise ServiceUnavailable("queue", f"SQS does not answer ({type(error).__name__}).") from error


def _letter(message: Message) -> DeadLetter | None:
    """A message of the dead-letter queue; None for one that holds no task."""
    try:
        task = task_of(message["Body"])
    except ValidationError:
        return None
    system, said = message.get("Attributes", {}), message.get("MessageAttributes", {})
    at = datetime.fromtimestamp(int(system.get("SentTimestamp", 0)) / 1000, UTC)
    return DeadLetter(
        message["MessageId"],
        task,
        said.get("reason", {}).get("StringValue", _UNTOLD),
        int(said.get("attempts", {}).get("StringValue") or system.get("ApproximateReceiveCount", 0)),
        at.isoformat(timespec="milliseconds"),
    )


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    """What was deleted meanwhile cannot be given back."""
    from botocore.exceptions import ClientError

    try:
        yield
    except ClientError:
        return


def _group(group: str) -> str:
    return group if len(group) <= _LONGEST_GROUP and group.isascii() else _sha256(group)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _said(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200]
