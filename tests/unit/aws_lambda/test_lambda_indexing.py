import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from lambda_stub import Context
from moto import mock_aws

from cragside.adapters.aws.sqs import SqsQueue
from cragside.application.attempts import Attempts, Indexer
from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, ProcessingError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Stage, Task
from cragside.entrypoints.aws_lambda.indexing import MARGIN_SECONDS, IndexFunction, start
from cragside.settings import Settings
from tests.libraries import EchoAnnotator, MemoryWorkspaces
from tests.queues import make_fifo

ROOT = Path(__file__).parents[3]


class Sqs:
    """A queue, and the events that Lambda would make of what is in it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = boto3.client("sqs")
        self.queue = SqsQueue(url)

    def send(self, *tasks: Task) -> None:
        asyncio.run(self.queue.send(tasks))

    def send_raw(self, body: str, group: str = "library/doc-1") -> None:
        self.client.send_message(QueueUrl=self.url, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=body)

    def event(self) -> dict[str, Any]:
        messages = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["All"], VisibilityTimeout=30
        ).get("Messages", [])
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": message["Attributes"],
                    "messageAttributes": {},
                    "eventSource": "aws:sqs",
                    "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:index.fifo",
                    "awsRegion": "eu-central-1",
                }
                for message in messages
            ]
        }

    def dead(self) -> list[str]:
        return [letter.reason for letter in asyncio.run(self.queue.dead())]

    def dead_bodies(self) -> list[tuple[str, str]]:
        url = self.client.get_queue_url(QueueName="index-dead.fifo")["QueueUrl"]
        messages = self.client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0
        ).get("Messages", [])
        return [(each["Body"], each["MessageAttributes"]["reason"]["StringValue"]) for each in messages]

    def left(self) -> int:
        return asyncio.run(self.queue.stats()).pending + asyncio.run(self.queue.stats()).processing


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    # It makes boto3 begin a new session, which takes longer to make than a queue.
    with mock_aws():
        yield


@pytest.fixture
def sqs(aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sqs]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    client = boto3.client("sqs")
    yield Sqs(make_fifo(client))
    for url in client.list_queues()["QueueUrls"]:
        client.delete_queue(QueueUrl=url)


@pytest.fixture
def function(sqs: Sqs) -> Iterator[Callable[[MemoryWorkspaces], IndexFunction]]:
    made: list[IndexFunction] = []

    def make(workspaces: MemoryWorkspaces) -> IndexFunction:
        attempts = Attempts(sqs.queue, Indexer(workspaces, EchoAnnotator()), attempts=3, chance=lambda: 0.0)
        members = {"queue": sqs.queue, "attempts": attempts, "workspaces": workspaces}
        made.append(IndexFunction(Container(Settings(index_parallel=4), **members)))
        return made[-1]

    yield make
    for each in made:
        each._runner.close()


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed") -> Task:
    return Task("library", document, f"{document}-sha", part, stage)


def reported(answer: dict[str, Any], event: dict[str, Any]) -> list[tuple[str, int]]:
    failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
    bodies = [json.loads(record["body"]) for record in event["Records"] if record["messageId"] in failed]
    return [(body["document_id"], body["part"]) for body in bodies]


def failing(bad: Task, error: Exception) -> Callable[[Task], None]:
    def before(each: Task) -> None:
        if each == bad:
            raise error

    return before


def test_a_successful_batch_reports_no_failures(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send(task(part=0), task(part=1), task("doc-2"))
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert set(workspaces.done()) == {task(part=0), task(part=1), task("doc-2")}
    assert sqs.left() == 0


def test_a_failure_reports_the_later_messages_of_its_group(sqs: Sqs, function: Any) -> None:
    sqs.send(task(part=0), task(part=1), task(part=2), task("doc-2"))
    event = sqs.event()
    workspaces = MemoryWorkspaces(before=failing(task(part=1), ProcessingError("It broke.")))
    answer = function(workspaces).answer(event, Context())
    assert reported(answer, event) == [("doc-1", 1), ("doc-1", 2)]


def test_a_batch_of_failures_is_reported_and_raises_nothing(sqs: Sqs, function: Any) -> None:
    sqs.send(task())
    event = sqs.event()
    workspaces = MemoryWorkspaces(before=failing(task(), ServiceUnavailable("annotator", "It is down.")))
    assert reported(function(workspaces).answer(event, Context()), event) == [("doc-1", 0)]
    assert sqs.dead() == []


def test_a_message_that_is_given_up_becomes_a_dead_letter(sqs: Sqs, function: Any) -> None:
    sqs.send(task(), task(part=1))
    workspaces = MemoryWorkspaces(before=failing(task(), ValidationError("The text is blank.")))
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert sqs.dead() == ["The text is blank."]
    assert workspaces.failures == [(task(), "The text is blank.")]
    assert workspaces.done() == [task(part=1)]
    assert sqs.left() == 0


def test_the_last_attempt_is_the_one_that_the_queue_counts(sqs: Sqs, function: Any) -> None:
    sqs.send(task())
    workspaces = MemoryWorkspaces(before=failing(task(), ProcessingError("It broke.")))
    event = sqs.event()
    event["Records"][0]["attributes"]["ApproximateReceiveCount"] = "3"
    assert function(workspaces).answer(event, Context()) == {"batchItemFailures": []}
    assert sqs.dead() == ["It broke."]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("no json", "not JSON"),
        ("[]", "lacks"),
        ("{}", "lacks workspace"),
        (json.dumps({**json.loads('{"workspace": "a", "document_id": "b", "content_hash": "c"}'), "part": 0}), "stage"),
        ('{"workspace":"a","document_id":"b","content_hash":"c","part":-1,"stage":"embed"}', "not those of a task"),
        ('{"workspace":"a","document_id":"b","content_hash":"c","part":true,"stage":"embed"}', "not those of a task"),
        ('{"workspace":["a"],"document_id":"b","content_hash":"c","part":0,"stage":"embed"}', "not those of a task"),
        ('{"workspace":"a","document_id":"b","content_hash":"c","part":0,"stage":"drop"}', "not those of a task"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_an_invalid_task_becomes_a_dead_letter_with_a_reason(sqs: Sqs, function: Any, body: str, reason: str) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send_raw(body)
    sqs.send(task())
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    ((held, said),) = sqs.dead_bodies()
    assert held == body
    assert reason in said
    assert workspaces.done() == [task()]
    assert sqs.left() == 0


@pytest.mark.parametrize(
    "event",
    [None, [], "event", {}, {"Records": None}, {"Records": [1, None, {}, {"messageId": 7}]}, {"requestContext": {}}],
)
def test_an_event_of_something_else_is_answered_and_nothing_is_done(function: Any, event: Any) -> None:
    workspaces = MemoryWorkspaces()
    assert function(workspaces).answer(event, Context()) == {"batchItemFailures": []}
    assert workspaces.log == []


def test_a_record_that_lacks_everything_but_its_id_is_rejected_or_reported_but_raises_nothing(function: Any) -> None:
    answer = function(MemoryWorkspaces()).answer({"Records": [{"messageId": "m-1"}]}, Context())
    assert answer["batchItemFailures"] in ([], [{"itemIdentifier": "m-1"}])


def test_nothing_is_begun_when_the_time_left_is_short(sqs: Sqs, function: Any) -> None:
    sqs.send(task())
    event, workspaces = sqs.event(), MemoryWorkspaces(before=lambda _: asyncio.sleep(60))
    event["Records"][0]["attributes"]["ApproximateReceiveCount"] = "3"
    answer = function(workspaces).answer(event, Context(seconds=MARGIN_SECONDS - 1))
    assert reported(answer, event) == [("doc-1", 0)]
    assert workspaces.log == []
    assert len(sqs.event()["Records"]) == 1  # it comes again at once, not after the queue's visibility timeout


def test_a_task_that_exceeds_the_time_is_cancelled_and_reported(sqs: Sqs, function: Any) -> None:
    sqs.send(task("slow"), task("fast"))

    async def before(each: Task) -> None:
        await asyncio.sleep(60 if each.document_id == "slow" else 0)

    event, workspaces = sqs.event(), MemoryWorkspaces(before=before)
    answer = function(workspaces).answer(event, Context(seconds=MARGIN_SECONDS + 1))
    assert reported(answer, event) == [("slow", 0)]
    assert workspaces.done() == [task("fast")]
    assert [json.loads(record["body"])["document_id"] for record in sqs.event()["Records"]] == ["slow"]


def test_a_task_that_is_too_long_for_the_function_is_given_up_after_its_attempts(sqs: Sqs, function: Any) -> None:
    sqs.send(task("slow"))
    workspaces = MemoryWorkspaces(before=lambda _: asyncio.sleep(60))
    index, too_long = function(workspaces), "It takes longer than the function may run."
    for _ in range(2):
        event = sqs.event()
        assert reported(index.answer(event, Context(seconds=MARGIN_SECONDS + 0.2)), event) == [("slow", 0)]
        assert sqs.dead() == []
    assert index.answer(sqs.event(), Context(seconds=MARGIN_SECONDS + 0.2)) == {"batchItemFailures": []}
    assert sqs.dead() == [too_long]
    assert workspaces.failures == [(task("slow"), too_long)]
    assert sqs.left() == 0


def test_a_task_beside_others_is_not_given_up(sqs: Sqs, function: Any) -> None:
    sqs.send(task("slow"), task("beside"))
    event, workspaces = sqs.event(), MemoryWorkspaces(before=lambda _: asyncio.sleep(60))
    for record in event["Records"]:
        record["attributes"]["ApproximateReceiveCount"] = "3"
    answer = function(workspaces).answer(event, Context(seconds=MARGIN_SECONDS + 0.2))
    assert reported(answer, event) == [("slow", 0), ("beside", 0)]
    assert sqs.dead() == workspaces.failures == []


def test_the_scheduled_event_queues_what_a_crash_left_out(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"library": [task(), task(part=1)], "other": []}
    index = function(workspaces)
    assert index.answer({"sweep": True}, Context()) == {"swept": True, "workspaces": 2, "tasks": 2}
    assert index.answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert set(workspaces.done()) == {task(), task(part=1)}


def test_a_busy_queue_is_not_filled_by_the_schedule(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"library": [task()]}
    sqs.send(task())
    assert function(workspaces).answer({"sweep": True}, Context()) == {"swept": False, "reason": "busy"}
    assert sqs.left() == 1


def test_a_sweep_ends_before_the_function_does(sqs: Sqs, function: Any) -> None:
    answer = function(MemoryWorkspaces()).answer({"sweep": True}, Context(seconds=MARGIN_SECONDS - 1))
    assert answer == {"swept": False, "reason": "time"}


def test_a_sweep_that_the_queue_fails_is_a_failed_invocation(sqs: Sqs, function: Any) -> None:
    index = function(MemoryWorkspaces())
    sqs.client.delete_queue(QueueUrl=sqs.url)
    with pytest.raises(ConfigurationError, match="There is no queue"):
        index.answer({"sweep": True}, Context())


def test_without_a_database_there_is_nothing_to_migrate(sqs: Sqs, function: Any) -> None:
    with pytest.raises(ConfigurationError, match="POSTGRES_URI is not set"):
        function(MemoryWorkspaces()).answer({"migrate": True}, Context())


def test_a_function_without_its_queue_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_QUEUE_URL", raising=False)
    with pytest.raises(ConfigurationError, match="RAG_QUEUE_URL"):
        start()


_SCRIPT = """
import sys
sys.path[:0] = ["functions/index"]
from handler import handler
class Context:
    function_name = function_version = memory_limit_in_mb = invoked_function_arn = aws_request_id = "1"
    def get_remaining_time_in_millis(self):
        return 60000
assert handler({"Records": []}, Context()) == {"batchItemFailures": []}
heavy = {"lightrag", "langgraph", "numpy", "boto3", "fastapi", "typer", "trafilatura", "lxml", "pypdfium2"}
print("heavy:", sorted({name.partition(".")[0] for name in sys.modules} & heavy))
"""


def test_its_start_imports_nothing_heavy(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "OLLAMA", "SEARXNG"))}
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT / "layers/core/python"),
        "RAG_HOME": str(tmp_path),
        "RAG_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/123456789012/index.fifo",
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "heavy: []"
