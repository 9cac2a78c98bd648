"""Queues for tests, and their time."""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cragside.adapters.aws.sqs import SqsMessages
from cragside.databases.postgres.address import PostgresAddress
from cragside.databases.postgres.database import PostgresDatabase
from cragside.ports.task_messages import TaskMessages
from cragside.store.queues.local import local_queue
from cragside.store.queues.postgres import postgres_queue
from cragside.store.queues.sql import TaskQueue
from tests.clocks import MovedClock
from tests.services.backends import migrated

LEASE_SECONDS = 2


@dataclass(frozen=True)
class Queues:
    """Makes queues that are one, and lets time pass for them."""

    make: Callable[[], TaskQueue]
    pass_by: Callable[[float], Awaitable[None]]


def file_queues(folder: Path, messages: TaskMessages | None = None) -> Queues:
    clock = MovedClock()
    make = partial(local_queue, folder, messages=messages, lease_seconds=LEASE_SECONDS, clock=clock)
    return Queues(make, _moving(clock))


@contextmanager
def postgres_queues(postgres: Any) -> Iterator[Queues]:
    """The database has a clock of its own. So its rows grow older."""
    clock = MovedClock()
    with migrated(postgres) as uri:
        address = PostgresAddress.parse(uri)
        database = PostgresDatabase(address, most=1)

        async def pass_by(seconds: float) -> None:
            await database.value(
                "UPDATE crag.task SET lease = lease - make_interval(secs => $1), due = due - make_interval(secs => $1)",
                seconds,
            )
            clock.move(seconds)

        def make() -> TaskQueue:  # in forked processes too, which need connections of their own
            return postgres_queue(PostgresDatabase(address, most=2), lease_seconds=LEASE_SECONDS, clock=clock)

        yield Queues(make, pass_by)


@contextmanager
def sqs_queues(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queues]:
    """A file, with messages about its tasks in SQS."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield file_queues(folder, SqsMessages(make_fifo(boto3.client("sqs"))))


def make_fifo(client: Any, *, receives: int = 100) -> str:
    """A FIFO queue of SQS with a dead-letter queue; its URL."""
    fifo = {"FifoQueue": "true"}
    dead = client.create_queue(QueueName="index-dead.fifo", Attributes=fifo)["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})
    url: str = client.create_queue(QueueName="index.fifo", Attributes={**fifo, "RedrivePolicy": policy})["QueueUrl"]
    return url


def _moving(clock: MovedClock) -> Callable[[float], Awaitable[None]]:
    async def pass_by(seconds: float) -> None:
        clock.move(seconds)

    return pass_by
