"""Messages in a FIFO queue of SQS, which call a Lambda function when tasks wait."""

import asyncio
import hashlib
import json
import math
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from typing_extensions import override

from cragside.adapters.aws.client import AwsClient
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Task
from cragside.domain.names import store_name
from cragside.ports.task_messages import TaskMessages

_LONGEST_GROUP = 128
_FIELDS = ("workspace", "document_id", "content_hash", "part", "stage")
_LOOK = '{"look":true}'
# Limits of SQS: entries in a batch, seconds that a message can be invisible.
_BATCH, _LONGEST_DELAY = 10, 43_200
_READ_SECONDS = 25
_REFUSED = ("AccessDenied", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidAccessKeyId", "KmsAccessDenied")

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


class SqsMessages(TaskMessages):
    """Messages in the FIFO queue `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._aws = AwsClient("sqs", "RAG_QUEUE_URL", component="queue", read_seconds=_READ_SECONDS)

    @override
    async def send(self, groups: Collection[str]) -> None:
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

    @override
    async def take(self, adopt: Callable[[Sequence[Task]], Awaitable[None]]) -> None:
        messages = await self._do(
            lambda client: client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=_BATCH).get("Messages", [])
        )
        if messages:
            await adopt(self.tasks_in(message["Body"] for message in messages))
            entries = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
            await self._do(lambda client: client.delete_message_batch(QueueUrl=self._url, Entries=entries))

    @override
    def tasks_in(self, bodies: Iterable[str]) -> list[Task]:
        return [task for body in bodies if (task := task_of(body)) is not None]

    @override
    async def hide(self, receipt: str, *, seconds: float) -> None:
        hidden = min(math.ceil(seconds), _LONGEST_DELAY)
        await self._do(
            lambda client: client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt, VisibilityTimeout=hidden
            )
        )

    async def close(self) -> None:
        """Close connections."""
        self._aws.close()

    def _send(self, client: Any, entries: Sequence[dict[str, str]]) -> None:
        for start in range(0, len(entries), _BATCH):
            batch = entries[start : start + _BATCH]
            if failed := client.send_message_batch(QueueUrl=self._url, Entries=batch).get("Failed"):
                raise ServiceUnavailable("queue", f"SQS did not take {len(failed)} messages ({failed[0].get('Code')}).")

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
