import json
from collections.abc import Iterator
from dataclasses import replace

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from cragside.adapters.aws.sqs import SqsQueue, body_of, task_of
from cragside.domain.errors import ConfigurationError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Task
from tests.queues import SqsClock, make_fifo

TASK = Task("library", "doc-1", "sha", 2, "enrich")


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield


def test_a_task_survives_the_round_trip_through_a_message() -> None:
    assert task_of(body_of(TASK)) == TASK


def test_a_part_beyond_all_bounds_is_no_task() -> None:
    with pytest.raises(ValidationError, match="not those of a task"):
        task_of(body_of(replace(TASK, part=2**31)))


async def test_closing_gives_back_every_task_even_if_a_call_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = SqsQueue(make_fifo(boto3.client("sqs")))
    await queue.send([TASK, replace(TASK, document_id="doc-2", stage="embed")])
    taken = await queue.receive(limit=10, wait=0)
    assert len(taken) == 2
    given_back: list[str] = []

    def hidden(*, ReceiptHandle: str, **_: object) -> None:  # noqa: N803 (boto3's name)
        given_back.append(ReceiptHandle)
        raise ClientError({"Error": {"Code": "ReceiptHandleIsInvalid"}}, "ChangeMessageVisibility")

    monkeypatch.setattr(queue._aws._client, "change_message_visibility", hidden)
    await queue.close()
    assert sorted(given_back) == sorted(delivery.receipt for delivery in taken)


async def test_a_queue_that_is_not_there_is_a_matter_of_configuration() -> None:
    queue = SqsQueue("https://sqs.eu-central-1.amazonaws.com/123456789012/nowhere.fifo")
    with pytest.raises(ConfigurationError, match="no queue"):
        await queue.send([TASK])


async def test_a_queue_without_dead_letters_is_a_matter_of_configuration() -> None:
    url = boto3.client("sqs").create_queue(QueueName="bare.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    with pytest.raises(ConfigurationError, match="redrive policy"):
        await SqsQueue(url).stats()


async def test_a_queue_out_of_reach_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import EndpointConnectionError

    queue = SqsQueue(make_fifo(boto3.client("sqs")))
    await queue.stats()

    def unreachable(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://sqs")

    monkeypatch.setattr(queue._aws._client, "send_message_batch", unreachable)
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        await queue.send([TASK])


async def test_no_region_is_a_matter_of_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(ConfigurationError, match="region"):
        await SqsQueue("https://sqs.eu-central-1.amazonaws.com/1/a.fifo").send([TASK])


async def test_an_invalid_message_becomes_a_dead_letter() -> None:
    client = boto3.client("sqs")
    queue = SqsQueue(url := make_fifo(client))
    client.send_message(QueueUrl=url, MessageBody="nonsense", MessageGroupId="g", MessageDeduplicationId="1")
    await queue.send([TASK])
    assert [delivery.task for delivery in await queue.receive(limit=10, wait=0)] == [TASK]
    assert (await queue.stats()).dead == 1
    assert await queue.dead() == []


async def test_dead_letters_moved_by_sqs_have_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    client, clock = boto3.client("sqs"), SqsClock(monkeypatch)
    queue = SqsQueue(make_fifo(client, receives=1), lease_seconds=1)
    await queue.send([TASK])
    assert len(await queue.receive(limit=1, wait=0)) == 1
    clock.move(1.1)
    assert await queue.receive(limit=1, wait=0) == []
    (letter,) = await queue.dead()
    assert letter.task == TASK
    assert "SQS gave the task up" in letter.reason
    assert await queue.revive() == 1


async def test_groups_and_ids_keep_to_what_sqs_allows() -> None:
    long = Task("w" * 63, "ü" * 200, "sha", 0, "embed")
    queue = SqsQueue(make_fifo(boto3.client("sqs")))
    await queue.send([long])
    assert [delivery.task for delivery in await queue.receive(limit=1, wait=0)] == [long]


async def test_the_length_of_a_reason_is_bounded() -> None:
    queue = SqsQueue(make_fifo(boto3.client("sqs")))
    await queue.send([TASK])
    (delivery,) = await queue.receive(limit=1, wait=0)
    await queue.bury(delivery, "x" * 10_000)
    (letter,) = await queue.dead()
    assert len(letter.reason) == 1000
    assert json.loads(body_of(letter.task)) == json.loads(body_of(TASK))


async def test_deleting_a_document_hides_no_dead_letters() -> None:
    queue = SqsQueue(url := make_fifo(boto3.client("sqs")))
    await queue.send([TASK])
    (delivery,) = await queue.receive(limit=1, wait=0)
    await queue.bury(delivery, "no")
    deleting = SqsQueue(url)
    await deleting.discard(workspace="library", document_id="doc-1")
    assert deleting._aws._client is None, "SQS is not even asked"
    assert [letter.task for letter in await queue.dead()] == [TASK]
