"""A dev that documents can be brought to, from deployment to destruction. The tests build on each other, in this order.

An emulator of AWS runs the functions from their layers; PostgreSQL and Neo4j are real.
"""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import asyncpg
import pytest
from neo4j import GraphDatabase
from writable_flight import WritableFlight, until

from tests.services import cdk
from tests.services.ministack import Ministack
from tests.services.neo4j_server import Neo4j
from tests.services.postgres import Postgres
from tests.services.requirement import stay_down
from tests.services.tools import Unavailable

pytestmark = pytest.mark.e2e

SURVEY = Path(__file__).parents[1] / "data" / "survey.pdf"
PAGE = 137
# Lambda itself uses these of a function's permissions.
OF_LAMBDA = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
OF_ITS_POLLER = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
# Nobody lists, but S3 tells a missing object from a forbidden one by it.
OF_S3 = {"s3:ListBucket"}
QUESTION = f"At which station did the keeper sign log {PAGE * 7919 % 100_003:05}?"


@pytest.fixture(scope="module")
def store(postgres: Postgres) -> Iterator[str]:
    """The address of a database with pgvector and no tables."""
    database = postgres.database()
    with asyncio.Runner() as runner:
        yield runner.run(database.__aenter__())
        runner.run(database.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def flight(store: str, neo4j: Neo4j, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WritableFlight]:
    """All stacks, deployed into an emulator of their own."""
    with ExitStack() as stack:
        try:
            cdk.install()
            emulator = stack.enter_context(Ministack())
        except Unavailable as reason:
            stay_down(f"emulator or command line could not be had: {reason}", os.environ, "E2E")
        flight = WritableFlight(emulator, tmp_path_factory.mktemp("writable"), store, neo4j)
        flight.prepare()
        flight.deploy()
        emulator.enforce(True)
        flight.renew()
        yield flight


@pytest.fixture(scope="module")
def survey(flight: WritableFlight) -> str:
    """The id of a PDF that was brought by way of the bucket."""
    return flight.upload(SURVEY.read_bytes(), "survey.pdf")


def test_the_index_function_makes_the_tables(flight: WritableFlight) -> None:
    assert flight.job({"migrate": True}) == {"migrated": True, "made": True}
    assert flight.job({"migrate": True}) == {"migrated": True, "made": False}
    flight.wait_until_ready()


def test_an_uploaded_pdf_is_indexed_by_the_other_function(flight: WritableFlight, survey: str) -> None:
    until(lambda: flight.status(survey) == "enriched", "the PDF is indexed")
    assert "Contents" not in flight.client("s3").list_objects_v2(Bucket=flight.outputs["UploadBucket"])


def test_its_names_are_in_neo4j(survey: str, neo4j: Neo4j) -> None:
    assert nodes_of(survey, neo4j)


def test_an_unknown_upload_is_not_found(flight: WritableFlight) -> None:
    body = {"upload": "0" * 32, "name": "nothing.txt"}
    answer = flight.call("POST", "/v1/documents", token=flight.token, body=body)
    assert answer.status_code == 404, answer.text


def test_a_question_is_answered_with_the_page(flight: WritableFlight, survey: str) -> None:
    found = flight.evidence(QUESTION)
    assert found["verdict"] == "local"
    shown = found["documents"][0]["metadata"]
    assert (shown["filename"], shown["page"]) == ("survey.pdf", PAGE)


def test_an_exchange_is_remembered(flight: WritableFlight) -> None:
    said = {"user": "Which colour has the boat of the lock keeper?", "assistant": "The lock keeper's boat is green."}
    added = flight.call("POST", "/v1/memories", token=flight.token, body=said)
    assert (added.status_code, added.json()["indexed"]) == (200, True), added.text

    def recalled() -> bool:
        body = {"query": "What colour is the lock keeper's boat?"}
        found = flight.call("POST", "/v1/memories/search", token=flight.token, body=body)
        return "green" in found.json()["text"]

    until(recalled, "the exchange is recalled")


def test_a_url_is_refused_at_once(flight: WritableFlight) -> None:
    answer = flight.call("POST", "/v1/documents", token=flight.token, body={"url": "https://page.example/"})
    assert (answer.status_code, answer.json()["error"]["details"]["reason"]) == (400, "fetching_is_off")


def test_a_poisonous_message_says_look_as_any_other(flight: WritableFlight) -> None:
    sqs, url = flight.client("sqs"), flight.outputs["TaskQueue"]
    sqs.send_message(QueueUrl=url, MessageBody="no task", MessageGroupId="p", MessageDeduplicationId="p")
    until(lambda: messages_left(flight) == 0, "the message is gone")
    found = sqs.receive_message(QueueUrl=flight.outputs["DeadLetters"], VisibilityTimeout=0)
    assert "Messages" not in found


def test_the_alarm_on_dead_letters_reaches_whoever_is_told(flight: WritableFlight) -> None:
    """The emulator makes no figures of logs: the test sends the one that the alarm watches."""
    metrics, sqs = flight.client("cloudwatch"), flight.client("sqs")
    inbox = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=inbox, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = flight.outputs["TopicArn"]
    anybody = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [anybody]})
    sqs.set_queue_attributes(QueueUrl=inbox, Attributes={"Policy": policy})
    flight.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    (alarm,) = [each for each in metrics.describe_alarms()["MetricAlarms"] if each.get("MetricName") == "GivenUp"]
    value = {name: alarm[name] for name in ("MetricName", "Dimensions")} | {"Value": 1.0}
    metrics.put_metric_data(Namespace=alarm["Namespace"], MetricData=[value])

    def told() -> bool:
        found = sqs.receive_message(QueueUrl=inbox, VisibilityTimeout=0).get("Messages", [])
        return any(alarm["AlarmName"] in each["Body"] for each in found)

    until(told, "the alarm is told")
    sqs.delete_queue(QueueUrl=inbox)


def test_the_schedule_calls_for_tasks_whose_messages_were_lost(flight: WritableFlight) -> None:
    events, functions, sqs = flight.client("events"), flight.client("lambda"), flight.client("sqs")
    (rule,) = events.list_rules()["Rules"]
    (target,) = events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    (source,) = functions.list_event_source_mappings()["EventSourceMappings"]
    functions.update_event_source_mapping(UUID=source["UUID"], Enabled=False)
    text = {"text": "The sluice of Cragside was built in 1865.", "name": "sluice.txt"}
    added = flight.call("POST", "/v1/documents", token=flight.token, body=text)
    assert added.status_code == 202, added.text
    sqs.purge_queue(QueueUrl=flight.outputs["TaskQueue"])
    functions.update_event_source_mapping(UUID=source["UUID"], Enabled=True)
    until(lambda: flight.job(json.loads(target["Input"]))["swept"], "the queue is idle")
    until(lambda: flight.status(added.json()["documents"][0]["id"]) == "enriched", "the document is indexed")


def test_an_outage_of_the_database_is_waited_out(flight: WritableFlight, store: str, postgres: Postgres) -> None:
    """The message is of the version before, which had a task in each."""
    database, before = store.rpartition("/")[2], flight.emulator.calls()
    body = {"workspace": "default", "document_id": "doc-gone", "content_hash": "0", "part": 0, "stage": "embed"}
    message = {"MessageBody": json.dumps(body), "MessageGroupId": "o", "MessageDeduplicationId": "o"}
    asyncio.run(postgres.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false'))
    asyncio.run(
        postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
    )
    flight.client("sqs").send_message(QueueUrl=flight.outputs["TaskQueue"], **message)
    until(lambda: named(flight.emulator.calls() - before, "sqs:ChangeMessageVisibility"), "the message is put off")
    asyncio.run(postgres.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true'))
    until(lambda: messages_left(flight) == 0, "the message is gone")
    until(lambda: flight.job({"sweep": True})["swept"], "the task has ended")


def test_dead_letters_are_listed_and_revived(flight: WritableFlight, store: str) -> None:
    asyncio.run(buried("doc-dead", store))

    def dead() -> list[str]:
        listed = flight.call("GET", "/v1/queue/dead", token=flight.token)
        assert listed.status_code == 200, listed.text
        return [each["document_id"] for each in listed.json()["letters"]]

    until(lambda: dead() == ["doc-dead"], "the dead letter is listed")
    revived = flight.call("POST", "/v1/queue/revive", token=flight.token, body={})
    assert (revived.status_code, revived.json()["tasks"]) == (202, 1)
    assert dead() == []


def test_a_deleted_document_is_found_no_more(flight: WritableFlight, survey: str, neo4j: Neo4j) -> None:
    assert flight.call("DELETE", f"/v1/documents/{survey}", token=flight.token).status_code == 204
    found = flight.ask(QUESTION)["metadata"]["rag_context"]
    assert "survey.pdf" not in json.dumps(found["documents"])
    until(lambda: not nodes_of(survey, neo4j), "its names are gone from Neo4j")


def test_two_tokens_are_valid_while_one_is_exchanged(flight: WritableFlight) -> None:
    secrets, old, new = flight.client("secretsmanager"), flight.token, "a-token-that-is-new"
    secrets.put_secret_value(SecretId=flight.outputs["TokenSecret"], SecretString=f"{old}\n{new}")
    flight.renew()
    for token in (old, new):
        assert flight.call("GET", "/v1/workspaces", token=token).status_code == 200
    assert flight.call("GET", "/v1/workspaces", token="another").status_code == 401


def test_the_schedule_has_swept_too(flight: WritableFlight) -> None:
    """It fires each minute from the deployment on. While the queue has tasks, it leaves them alone."""
    until(lambda: flight.swept() > flight.asked_to_sweep, "a sweep that no test asked for")


@pytest.mark.parametrize("function", ["Enrich", "Index"])
def test_every_action_of_a_role_is_used_by_these_tests(flight: WritableFlight, function: str) -> None:
    ((role, policies),) = flight.permissions(function).items()
    used = {action for caller, action in flight.emulator.calls() if role in caller}
    allowed = set().union(*policies.values()) - OF_LAMBDA - OF_S3 - (OF_ITS_POLLER if function == "Index" else set())
    assert allowed - used == set()


def test_without_its_policies_the_function_is_out_of_service(flight: WritableFlight) -> None:
    ((role, policies),) = flight.permissions("Enrich").items()
    for policy in policies:
        flight.client("iam").delete_role_policy(RoleName=role, PolicyName=policy)
    flight.renew()
    answer = flight.call("POST", "/v1/enrich", token=flight.token, body={"prompt": f"/rag {QUESTION}"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "service_unavailable")


def test_drift_is_found(flight: WritableFlight) -> None:
    flight.emulator.enforce(False)
    url = flight.outputs["TaskQueue"]
    flight.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "42"})
    assert flight.drifts("cragside-dev-knowledge") == {"AWS::SQS::Queue": "MODIFIED"}


def test_nothing_is_left_after_the_destruction(flight: WritableFlight) -> None:
    flight.destroy()
    flight.remove_secrets()
    left = flight.left()
    assert not any(left.values()), left


def nodes_of(document: str, neo4j: Neo4j) -> int:
    """Count the nodes of the graph from that document alone, and from others too."""
    with GraphDatabase.driver(neo4j.address, auth=neo4j.auth) as driver:
        asked = "MATCH (n) WHERE n.source_id CONTAINS $document RETURN count(n) AS nodes"
        return int(driver.execute_query(asked, document=document).records[0]["nodes"])


async def buried(document: str, store: str) -> None:
    """Leave a dead letter."""
    connection = await asyncpg.connect(store)
    columns = "key, workspace, document_id, content_hash, part, stage, reason, attempts, at"
    values = "$1, 'default', $1, '0', 0, 'embed', 'It broke.', 3, '2026-01-01T00:00:00+00:00'"
    await connection.execute(f"INSERT INTO crag.dead_task ({columns}) VALUES ({values})", document)
    await connection.close()


def messages_left(flight: WritableFlight) -> int:
    """Count the messages about tasks, those included that a function has or that come again later."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    asked = flight.client("sqs").get_queue_attributes(QueueUrl=flight.outputs["TaskQueue"], AttributeNames=names)
    return sum(map(int, asked["Attributes"].values()))


def named(calls: set[tuple[str, str]], action: str) -> bool:
    """Return True if one of these calls is that action."""
    return any(each == action for _, each in calls)
