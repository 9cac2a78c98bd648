"""A queue whose tasks a Lambda function processes: messages in a FIFO queue of SQS call it."""

import asyncio
import hashlib
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from typing_extensions import override

from cragside.adapters.aws.client import AwsClient
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Task
from cragside.domain.names import store_name
from cragside.ports.index_queue import CalledQueue, DeadLetter, Delivery, IndexQueue, QueueStats

_LONGEST_GROUP = 128
_FIELDS = ("workspace", "document_id", "content_hash", "part", "stage")
_LOOK = '{"look":true}'
# Limits of SQS: entries in a batch, seconds that a message can be invisible.
_BATCH, _LONGEST_DELAY = 10, 43_200
_READ_SECONDS = 25
_REFUSED = ("AccessDenied", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidAccessKeyId", "KmsAccessDenied")

_log = logging.getLogger("cragside")

Result = TypeVar("Result")


def task_of(body: str) -> Task | None:
    """Return the task in a message of an earlier version, None if the message holds none."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or any(name not in given for name in _FIELDS):
        return None
    texts = all(isinstance(given[name], str) and given[name] for name in _FIELDS if name != "part")
    numbered = type(given["part"]) is int and 0 <= given["part"] < 2**31
    if not texts or not numbered or given["stage"] not in ("embed", "enrich"):
        return None
    try:
        # A message may be older than the rules for workspace names.
        return Task(store_name(given["workspace"]), *(given[name] for name in _FIELDS[1:]))
    except ValidationError:
        return None


class SqsQueue(CalledQueue):
    """Tasks in another queue, and messages about them in the FIFO queue `url`.

    A call that sends tasks sends one message for each of their groups, so that several functions start. Workers need no
    messages: they take away those that they find.
    """

    def __init__(self, url: str, tasks: IndexQueue) -> None:
        self._url = url
        self._tasks = tasks
        self._aws = AwsClient("sqs", "RAG_QUEUE_URL", component="queue", read_seconds=_READ_SECONDS)

    @override
    async def send(self, tasks: Sequence[Task]) -> None:
        if tasks:
            await self._tasks.send(tasks)
            await self._call({task.group for task in tasks})

    @override
    async def restore(self, tasks: Sequence[Task]) -> int:
        if count := await self._tasks.restore(tasks):
            await self._call({task.group for task in tasks})
        return count

    @override
    async def receive(self, *, limit: int, wait: float) -> list[Delivery]:
        if deliveries := await self._tasks.receive(limit=limit, wait=0):
            return deliveries
        try:
            await self._take_messages()
        except ServiceUnavailable as error:
            _log.warning("Messages of SQS stay where they are: %s", error.message)
        return await self._tasks.receive(limit=limit, wait=wait)

    @override
    async def extend(self, delivery: Delivery) -> None:
        await self._tasks.extend(delivery)

    @override
    async def finish(self, delivery: Delivery) -> None:
        await self._tasks.finish(delivery)

    @override
    async def retry(self, delivery: Delivery, *, delay: float) -> None:
        await self._tasks.retry(delivery, delay=delay)

    @override
    async def put_off(self, delivery: Delivery, *, delay: float) -> None:
        await self._tasks.put_off(delivery, delay=delay)

    @override
    async def bury(self, delivery: Delivery, reason: str) -> None:
        await self._tasks.bury(delivery, reason)

    @override
    async def dead(self, *, workspace: str | None = None, limit: int = 100) -> list[DeadLetter]:
        return await self._tasks.dead(workspace=workspace, limit=limit)

    @override
    async def revive(self, *, workspace: str | None = None, document_id: str | None = None) -> int:
        if count := await self._tasks.revive(workspace=workspace, document_id=document_id):
            await self.wake()
        return count

    @override
    async def discard(self, *, workspace: str, document_id: str | None = None) -> None:
        await self._tasks.discard(workspace=workspace, document_id=document_id)

    @override
    def leads(self) -> bool:
        return self._tasks.leads()

    @override
    async def stats(self) -> QueueStats:
        return await self._tasks.stats()

    @override
    async def stats_of(self, workspace: str) -> QueueStats:
        return await self._tasks.stats_of(workspace)

    @override
    async def wake(self) -> None:
        await self._call([uuid.uuid4().hex])

    @override
    async def adopt(self, bodies: Sequence[str]) -> None:
        await self._tasks.send([task for body in bodies if (task := task_of(body)) is not None])

    @override
    async def hide(self, receipt: str, *, seconds: float) -> None:
        hidden = min(math.ceil(seconds), _LONGEST_DELAY)
        await self._do(
            lambda client: client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=hidden
            )
        )

    @override
    async def close(self) -> None:
        await self._tasks.close()
        self._aws.close()

    async def _call(self, groups: Iterable[str]) -> None:
        """Send a message for each group. One function at a time gets the messages of a group."""
        entries = [
            {
                "Id": str(number % _BATCH),
                "MessageBody": _LOOK,
                "MessageGroupId": group if len(group) <= _LONGEST_GROUP and group.isascii() else _sha256(group),
                # SQS drops an equal message of the last five minutes, even if it was received already.
                "MessageDeduplicationId": uuid.uuid4().hex,
            }
            for number, group in enumerate(sorted(groups))
        ]
        await self._do(lambda client: self._send(client, entries))

    def _send(self, client: Any, entries: Sequence[dict[str, str]]) -> None:
        for start in range(0, len(entries), _BATCH):
            batch = entries[start : start + _BATCH]
            if failed := client.send_message_batch(QueueUrl=self._url, Entries=batch).get("Failed"):
                raise ServiceUnavailable("queue", f"SQS did not take {len(failed)} messages ({failed[0].get('Code')}).")

    async def _take_messages(self) -> None:
        messages = await self._do(
            lambda client: client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=_BATCH).get("Messages", [])
        )
        if messages:
            await self.adopt([message["Body"] for message in messages])
            entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
            await self._do(lambda client: client.delete_message_batch(QueueUrl=self._url, Entries=entries))

    async def _do(self, work: Callable[[Any], Result]) -> Result:
        return await asyncio.to_thread(self._done, work)

    def _done(self, work: Callable[[Any], Result]) -> Result:
        with self._aws.connected(self._refusal) as client:
            return work(client)

    def _refusal(self, code: str) -> ConfigurationError | None:
        if code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
            return ConfigurationError(
                f"There is no queue {self._url}. Check the URL and the region.", variable="RAG_QUEUE_URL"
            )
        if code.startswith(_REFUSED):
            return ConfigurationError(
                f"The queue {self._url} may not be used ({code}). Allow sqs:SendMessage on it, and where tasks are "
                "processed ReceiveMessage, DeleteMessage and ChangeMessageVisibility.",
                variable="RAG_QUEUE_URL",
            )
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
