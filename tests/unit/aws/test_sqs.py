import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from cragside.adapters.aws.sqs import SqsMessages, task_of
from cragside.domain.errors import ConfigurationError, ServiceUnavailable
from cragside.domain.indexing import QueueStats, Task
from cragside.store.queues.local import local_queue
from cragside.store.queues.sql import TaskQueue
from tests.queues import make_fifo

TASK = Task("library", "doc-1", "sha", 2, "enrich")
# As messages were while each held a task.
BODY = '{"workspace":"library","document_id":"doc-1","content_hash":"sha","part":2,"stage":"enrich"}'


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


@pytest.fixture
def client() -> Any:
    return boto3.client("sqs")


@pytest.fixture
def url(client: Any) -> str:
    return make_fifo(client)


@pytest.fixture
def sqs(url: str) -> SqsMessages:
    return SqsMessages(url)


@pytest.fixture
def queue(tmp_path: Path, sqs: SqsMessages) -> TaskQueue:
    return local_queue(tmp_path, messages=sqs)


def messages(client: Any, url: str) -> list[tuple[str, str]]:
    """Return group and body of each message that waits, and take them away."""
    found: list[tuple[str, str]] = []
    while batch := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"]).get("Messages"):
        for each in batch:
            found.append((each["Attributes"]["MessageGroupId"], each["Body"]))
            client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return found


def put(client: Any, url: str, body: str, number: int = 1) -> None:
    client.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g", MessageDeduplicationId=str(number))


async def test_a_message_says_look_and_holds_no_task(queue: TaskQueue, client: Any, url: str) -> None:
    await queue.send([TASK])
    assert messages(client, url) == [(TASK.group, '{"look":true}')]
    assert await queue.stats() == QueueStats(1, 0, 0)


async def test_each_group_of_tasks_gets_one_message(queue: TaskQueue, client: Any, url: str) -> None:
    sent = [replace(TASK, document_id=f"doc-{number}", part=part) for number in range(12) for part in range(3)]
    await queue.send(sent)
    assert sorted(group for group, _ in messages(client, url)) == sorted({task.group for task in sent})


async def test_a_task_that_is_sent_again_calls_again(queue: TaskQueue, client: Any, url: str) -> None:
    """SQS drops an equal message within five minutes, even if the first one was received already."""
    ids = set()
    for _ in range(2):
        await queue.send([TASK])
        (message,) = client.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]
        ids.add(message["Attributes"]["MessageDeduplicationId"])
        client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert len(ids) == 2


async def test_revived_tasks_call_and_no_letters_do_not(queue: TaskQueue, client: Any, url: str) -> None:
    await queue.send([TASK])
    (delivery,) = await queue.receive(limit=1, wait=0)
    await queue.bury(delivery, "no")
    messages(client, url)
    assert await queue.revive() == 1
    assert len(messages(client, url)) == 1
    assert await queue.revive() == 0
    assert messages(client, url) == []


async def test_lost_messages_lose_no_task(queue: TaskQueue, client: Any, url: str) -> None:
    await queue.send([TASK])
    messages(client, url)
    (delivery,) = await queue.receive(limit=1, wait=0)
    assert delivery.task == TASK


async def test_doubled_messages_double_no_task(queue: TaskQueue, sqs: SqsMessages) -> None:
    await queue.send([TASK])
    await sqs.send(["g"])
    await sqs.send(["g"])
    (delivery,) = await queue.receive(limit=10, wait=0)
    await queue.finish(delivery)
    assert await queue.receive(limit=10, wait=0) == []


async def test_a_worker_takes_away_the_messages_that_it_finds(
    queue: TaskQueue, sqs: SqsMessages, client: Any, url: str
) -> None:
    for _ in range(3):
        await sqs.send(["g"])
    assert await queue.receive(limit=10, wait=0) == []
    assert messages(client, url) == []


async def test_tasks_in_messages_of_the_version_before_are_received(queue: TaskQueue, client: Any, url: str) -> None:
    put(client, url, BODY)
    put(client, url, "nonsense", 2)
    (delivery,) = await queue.receive(limit=10, wait=0)
    assert (delivery.task, delivery.attempt) == (TASK, 1)
    assert {body for _, body in messages(client, url)} == {'{"look":true}'}


async def test_a_message_stays_until_its_task_is_in_the_queue(
    queue: TaskQueue, client: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(client, url, BODY)

    async def fails(_: object) -> None:
        raise ServiceUnavailable("queue", "The disk is full.")

    monkeypatch.setattr(queue, "send", fails)
    assert await queue.receive(limit=10, wait=0) == []
    held = client.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])
    assert held["Attributes"] == {"ApproximateNumberOfMessagesNotVisible": "1"}


@pytest.mark.parametrize(
    "body",
    [
        "no json",
        "",
        "[]",
        "{}",
        json.dumps({**json.loads(BODY), "part": -1}),
        json.dumps({**json.loads(BODY), "part": 2**31}),
        json.dumps({**json.loads(BODY), "part": True}),
        json.dumps({**json.loads(BODY), "workspace": ["a"]}),
        json.dumps({**json.loads(BODY), "workspace": "../x"}),
        json.dumps({**json.loads(BODY), "stage": "drop"}),
        "[" * 100_000,
    ],
)
def test_other_messages_hold_no_task(body: str) -> None:
    assert task_of(body) is None
    assert task_of(BODY) == TASK


async def test_the_store_has_the_task_though_sqs_does_not_answer(
    queue: TaskQueue, sqs: SqsMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqs.send(["g"])

    def unreachable(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://sqs")

    monkeypatch.setattr(sqs._aws._client, "send_message_batch", unreachable)
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        await queue.send([TASK])
    assert await queue.stats() == QueueStats(1, 0, 0)


async def test_a_worker_goes_on_while_sqs_does_not_answer(
    queue: TaskQueue, sqs: SqsMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqs.send(["g"])

    def unreachable(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://sqs")

    monkeypatch.setattr(sqs._aws._client, "receive_message", unreachable)
    assert await queue.receive(limit=1, wait=0) == []


async def test_a_queue_that_is_not_there_is_a_matter_of_configuration() -> None:
    sqs = SqsMessages("https://sqs.eu-central-1.amazonaws.com/123456789012/nowhere.fifo")
    with pytest.raises(ConfigurationError, match="no queue"):
        await sqs.send(["g"])


async def test_a_queue_that_may_not_be_used_is_a_matter_of_configuration(
    queue: TaskQueue, sqs: SqsMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sqs.send(["g"])

    def refused(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessageBatch")

    monkeypatch.setattr(sqs._aws._client, "send_message_batch", refused)
    with pytest.raises(ConfigurationError, match="sqs:SendMessage"):
        await queue.send([TASK])


async def test_no_region_is_a_matter_of_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(ConfigurationError, match="region"):
        await SqsMessages("https://sqs.eu-central-1.amazonaws.com/1/a.fifo").send(["g"])


async def test_groups_keep_to_what_sqs_allows(queue: TaskQueue, client: Any, url: str) -> None:
    await queue.send([Task("w" * 63, "ü" * 200, "sha", 0, "embed")])
    ((group, _),) = messages(client, url)
    assert len(group) == 64
