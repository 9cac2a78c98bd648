"""Tasks and dead letters as messages of SQS."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cragside.domain.errors import ValidationError
from cragside.domain.indexing import Task
from cragside.domain.names import store_name
from cragside.ports.index_queue import DeadLetter

SqsMessage = Mapping[str, Any]

_LONGEST_GROUP = 128
_REASON_CHARACTERS = 1000
_NO_REASON = "SQS gave the task up: no worker finished it, and none said why."
_FIELDS = ("workspace", "document_id", "content_hash", "part", "stage")


def body_of(task: Task) -> str:
    """The body of a task's message."""
    return json.dumps({name: getattr(task, name) for name in _FIELDS}, separators=(",", ":"))


def task_of(body: str) -> Task:
    """The task of a message. Raises `ValidationError` that says what is wrong with the message."""
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
    """The entry of a task in a batch. `call` is unique to the call that sends the batch."""
    group = task.group
    return {
        "Id": str(number),
        "MessageBody": body_of(task),
        "MessageGroupId": group if len(group) <= _LONGEST_GROUP and group.isascii() else _sha256(group),
        "MessageDeduplicationId": _sha256(f"{task.key}/{call}"),
    }


def dead_message(body: str, receipt: str, reason: str, attempts: int) -> dict[str, Any]:
    """The arguments that send a message to the dead-letter queue."""
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
    """The dead letter of a message; None if the message holds no task."""
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
