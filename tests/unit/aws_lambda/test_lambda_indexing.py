import asyncio
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

from cragside.adapters.aws.sqs import SqsMessages
from cragside.application.attempts import Attempts, Indexer
from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError, ProcessingError, ServiceUnavailable, ValidationError
from cragside.domain.indexing import Delivery, QueueStats, Stage, Task
from cragside.entrypoints.aws_lambda import indexing
from cragside.entrypoints.aws_lambda.indexing import MARGIN_SECONDS, IndexFunction, start
from cragside.settings import Settings
from cragside.store.queues.local import local_queue
from tests.clocks import MovedClock
from tests.libraries import EchoAnnotator, MemoryWorkspaces
from tests.queues import make_fifo

ROOT = Path(__file__).parents[3]


TOO_LONG = "It takes longer than the function may run."


class Sqs:
    """A queue, and the events that Lambda would make of the messages in SQS."""

    def __init__(self, url: str, home: Path, clock: MovedClock) -> None:
        self.url = url
        self.client = boto3.client("sqs")
        self.clock = clock
        self.messages = SqsMessages(url)
        self.queue = local_queue(home, messages=self.messages, clock=clock)

    def send(self, *tasks: Task) -> None:
        asyncio.run(self.queue.send(tasks))

    def send_raw(self, body: str, group: str = "library/doc-1") -> None:
        self.client.send_message(QueueUrl=self.url, MessageBody=body, MessageGroupId=group, MessageDeduplicationId=body)

    def event(self, *, received: int | None = None) -> dict[str, Any]:
        """Take messages as Lambda does. `received` is how often they seem to have been taken."""
        messages = self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10, AttributeNames=["All"], VisibilityTimeout=600
        ).get("Messages", [])
        seen = {} if received is None else {"ApproximateReceiveCount": str(received)}
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": {**message["Attributes"], **seen},
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

    def stats(self) -> QueueStats:
        return asyncio.run(self.queue.stats())


@pytest.fixture(scope="module")
def aws() -> Iterator[None]:
    # It makes boto3 begin a new session, which takes longer to make than a queue.
    with mock_aws():
        yield


@pytest.fixture
def sqs(aws: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Sqs]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    client = boto3.client("sqs")
    yield Sqs(make_fifo(client), tmp_path, MovedClock())
    for url in client.list_queues()["QueueUrls"]:
        client.delete_queue(QueueUrl=url)


@pytest.fixture
def function(sqs: Sqs) -> Iterator[Callable[[MemoryWorkspaces], IndexFunction]]:
    made: list[IndexFunction] = []

    def make(workspaces: MemoryWorkspaces) -> IndexFunction:
        attempts = Attempts(sqs.queue, Indexer(workspaces, EchoAnnotator()), attempts=3, chance=lambda: 0.0)
        members = {"queue": sqs.queue, "messages": sqs.messages, "attempts": attempts, "workspaces": workspaces}
        made.append(IndexFunction(Container(Settings(index_parallel=4, queue_url=sqs.url), **members)))
        return made[-1]

    yield make
    for each in made:
        each._runner.close()


def task(document: str = "doc-1", part: int = 0, stage: Stage = "embed") -> Task:
    return Task("library", document, f"{document}-sha", part, stage)


def reported(answer: dict[str, Any], event: dict[str, Any]) -> list[int]:
    """Return the numbers of the messages that come again."""
    failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
    return [number for number, record in enumerate(event["Records"]) if record["messageId"] in failed]


def hidden(monkeypatch: pytest.MonkeyPatch, sqs: Sqs) -> list[float]:
    """Return the list of seconds after which messages are to come again."""
    seconds: list[float] = []
    hide = sqs.messages.hide

    async def noted(receipt: str, *, seconds_: float) -> None:
        seconds.append(seconds_)
        await hide(receipt, seconds=seconds_)

    monkeypatch.setattr(sqs.messages, "hide", lambda receipt, *, seconds: noted(receipt, seconds_=seconds))
    return seconds


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
    assert sqs.stats() == QueueStats(0, 0, 0)


def test_one_message_is_enough_for_all_tasks_that_are_due(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send(*(task(f"doc-{number}") for number in range(12)))
    event = sqs.event()
    event["Records"] = event["Records"][:1]
    assert function(workspaces).answer(event, Context()) == {"batchItemFailures": []}
    assert len(workspaces.done()) == 12


def test_a_message_that_comes_twice_runs_no_task_twice(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send(task())
    index, event = function(workspaces), sqs.event()
    for _ in range(2):
        assert index.answer(event, Context()) == {"batchItemFailures": []}
    assert workspaces.done() == [task()]


def test_the_last_message_comes_again_while_a_task_waits_for_its_retry(
    sqs: Sqs, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.send(task(part=0), task(part=1), task("doc-2"))
    event, seconds = sqs.event(), hidden(monkeypatch, sqs)
    workspaces = MemoryWorkspaces(before=failing(task(part=1), ProcessingError("It broke.")))
    index = function(workspaces)
    assert reported(index.answer(event, Context()), event) == [len(event["Records"]) - 1]
    assert seconds == [2]
    assert set(workspaces.done()) == {task(part=0), task("doc-2")}
    workspaces.before = None
    sqs.clock.move(3)
    assert index.answer(event, Context()) == {"batchItemFailures": []}
    assert task(part=1) in workspaces.done()


def test_a_message_comes_again_after_longer_and_longer_pauses(
    sqs: Sqs, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.send(task())
    workspaces = MemoryWorkspaces(before=failing(task(), ServiceUnavailable("annotator", "It is down.")))
    index, event, seconds = function(workspaces), sqs.event(), hidden(monkeypatch, sqs)
    for received in range(1, 8):
        event["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(received)
        assert reported(index.answer(event, Context()), event) == [0]
    assert seconds == [2, 4, 8, 16, 32, 60, 60]
    assert sqs.dead() == []


def test_before_sqs_gives_a_message_up_another_one_takes_its_place(sqs: Sqs, function: Any) -> None:
    sqs.send(task())
    workspaces = MemoryWorkspaces(before=failing(task(), ServiceUnavailable("annotator", "It is down.")))
    assert function(workspaces).answer(sqs.event(received=8), Context()) == {"batchItemFailures": []}
    assert len(sqs.event()["Records"]) == 1


def test_all_messages_come_again_while_the_queue_fails(
    sqs: Sqs, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.send(task(), task("doc-2"))
    event, seconds = sqs.event(received=3), hidden(monkeypatch, sqs)

    async def fails(**_: object) -> None:
        raise ServiceUnavailable("queue", "The database is down.")

    monkeypatch.setattr(sqs.queue, "receive", fails)
    assert reported(function(MemoryWorkspaces()).answer(event, Context()), event) == [0, 1]
    assert seconds == [8, 8]


def test_a_task_that_is_given_up_becomes_a_dead_letter(
    sqs: Sqs, function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(indexing, "observe_given_up", counted.append)
    sqs.send(task(), task(part=1))
    workspaces = MemoryWorkspaces(before=failing(task(), ValidationError("The text is blank.")))
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert sqs.dead() == ["The text is blank."]
    assert workspaces.failures == [(task(), "The text is blank.")]
    assert workspaces.done() == [task(part=1)]
    assert sqs.stats() == QueueStats(0, 0, 1)
    assert counted == [1]


def test_the_last_attempt_is_the_one_that_the_queue_counts(sqs: Sqs, function: Any) -> None:
    sqs.send(task(), task("doc-2"))
    # The other one shows that the model answers: the task is to blame.
    workspaces = MemoryWorkspaces(before=failing(task(), ProcessingError("It broke.")))
    index, event = function(workspaces), sqs.event()
    for _ in range(2):
        assert reported(index.answer(event, Context()), event) == [1]
        sqs.clock.move(60)
    assert index.answer(event, Context()) == {"batchItemFailures": []}
    assert sqs.dead() == ["It broke."]


def test_a_wrong_configuration_counts_no_attempt(sqs: Sqs, function: Any) -> None:
    sqs.send(task())
    event = sqs.event()
    workspaces = MemoryWorkspaces(before=failing(task(), ConfigurationError("There is no model.")))
    index = function(workspaces)
    for _ in range(5):
        assert reported(index.answer(event, Context()), event) == [0]
        sqs.clock.move(61)
    (delivery,) = asyncio.run(sqs.queue.receive(limit=1, wait=0))
    assert delivery.attempt == 1


def test_messages_of_the_version_before_are_taken_with_their_tasks(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send_raw('{"workspace":"library","document_id":"doc-1","content_hash":"doc-1-sha","part":0,"stage":"embed"}')
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert workspaces.done() == [task()]


@pytest.mark.parametrize("body", ["no json", "[]", "{}", "[" * 100_000])
def test_a_message_says_look_whatever_is_in_it(sqs: Sqs, function: Any, body: str) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send(task())
    sqs.event()
    sqs.send_raw(body, group="another")
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert workspaces.done() == [task()]
    assert sqs.stats() == QueueStats(0, 0, 0)


@pytest.mark.parametrize(
    "event",
    [None, [], "event", {}, {"Records": None}, {"Records": [1, None, {}, {"messageId": 7}]}, {"requestContext": {}}],
)
def test_an_event_of_something_else_is_answered_and_nothing_is_done(function: Any, event: Any) -> None:
    workspaces = MemoryWorkspaces()
    assert function(workspaces).answer(event, Context()) == {"batchItemFailures": []}
    assert workspaces.log == []


def test_a_record_that_lacks_everything_but_its_id_is_a_message_too(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send(task())
    assert function(workspaces).answer({"Records": [{"messageId": "m-1"}]}, Context()) == {"batchItemFailures": []}
    assert workspaces.done() == [task()]


def test_nothing_is_begun_when_the_time_left_is_short(sqs: Sqs, function: Any) -> None:
    sqs.send(task())
    event, workspaces = sqs.event(received=3), MemoryWorkspaces(before=lambda _: asyncio.sleep(60))
    answer = function(workspaces).answer(event, Context(seconds=MARGIN_SECONDS - 1))
    assert reported(answer, event) == [0]
    assert workspaces.log == []
    assert len(sqs.event()["Records"]) == 1  # it comes again at once, not after the queue's visibility timeout


def test_a_task_that_exceeds_the_time_is_cancelled_and_comes_again(sqs: Sqs, function: Any) -> None:
    sqs.send(task("slow"), task("fast"))

    async def before(each: Task) -> None:
        await asyncio.sleep(60 if each.document_id == "slow" else 0)

    event, workspaces = sqs.event(), MemoryWorkspaces(before=before)
    answer = function(workspaces).answer(event, Context(seconds=MARGIN_SECONDS + 1))
    assert reported(answer, event) == [1]
    assert workspaces.done() == [task("fast")]
    assert len(sqs.event()["Records"]) == 1
    (again,) = asyncio.run(sqs.queue.receive(limit=10, wait=0))
    assert (again.task, again.attempt) == (task("slow"), 1)


def test_a_task_that_is_too_long_for_the_function_is_given_up_after_its_attempts(sqs: Sqs, function: Any) -> None:
    sqs.send(task("slow"))
    workspaces = MemoryWorkspaces(before=lambda _: asyncio.sleep(60))
    index = function(workspaces)
    for _ in range(2):
        event = sqs.event()
        assert reported(index.answer(event, Context(seconds=MARGIN_SECONDS + 0.2)), event) == [0]
        assert sqs.dead() == []
    assert index.answer(sqs.event(), Context(seconds=MARGIN_SECONDS + 0.2)) == {"batchItemFailures": []}
    assert sqs.dead() == [TOO_LONG]
    assert workspaces.failures == [(task("slow"), TOO_LONG)]
    assert sqs.stats() == QueueStats(0, 0, 1)


def test_a_task_beside_others_is_not_given_up(sqs: Sqs, function: Any) -> None:
    sqs.send(task("slow"), task("beside"))
    workspaces = MemoryWorkspaces(before=lambda _: asyncio.sleep(60))
    index = function(workspaces)
    for _ in range(4):
        event = sqs.event()
        answer = index.answer(event, Context(seconds=MARGIN_SECONDS + 0.2))
        assert reported(answer, event) == [len(event["Records"]) - 1]
    assert sqs.dead() == workspaces.failures == []


def test_a_lease_is_renewed_while_its_task_runs(sqs: Sqs, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_EXTEND_SECONDS", 0.01)
    workspaces, renewed, extend = MemoryWorkspaces(), asyncio.Event(), sqs.queue.extend
    others: list[Delivery] = []

    async def noted(delivery: Delivery) -> None:
        await extend(delivery)
        renewed.set()

    async def before(_: Task) -> None:
        for _ in range(3):
            sqs.clock.move(40)
            renewed.clear()
            await renewed.wait()
        others.extend(await sqs.queue.receive(limit=1, wait=0))

    monkeypatch.setattr(sqs.queue, "extend", noted)
    workspaces.before = before
    sqs.send(task())
    assert function(workspaces).answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert others == []
    assert workspaces.done() == [task()]


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
    assert sqs.stats() == QueueStats(1, 0, 0)


def test_a_task_whose_message_was_lost_is_told_of_by_the_schedule(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    sqs.send(task())
    sqs.client.purge_queue(QueueUrl=sqs.url)
    index = function(workspaces)
    index.answer({"sweep": True}, Context())
    assert index.answer(sqs.event(), Context()) == {"batchItemFailures": []}
    assert workspaces.done() == [task()]


def test_a_sweep_ends_before_the_function_does(sqs: Sqs, function: Any) -> None:
    answer = function(MemoryWorkspaces()).answer({"sweep": True}, Context(seconds=MARGIN_SECONDS - 1))
    assert answer == {"swept": False, "reason": "time"}


def test_a_sweep_that_the_queue_fails_is_a_failed_invocation(sqs: Sqs, function: Any) -> None:
    workspaces = MemoryWorkspaces()
    workspaces.unfinished = {"library": [task()]}
    index = function(workspaces)
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
