"""The stack of knowledge that documents can be brought to, and what the service's function gets of it."""

from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser, problems_of

from cragside.settings import Settings, variable_of
from infra.config import Writable, named

pytestmark = pytest.mark.infra

SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:postgres-AbC123"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/0f1e2d3c-0000-4000-8000-000000000000"
WRITABLE = Writable(index_concurrency=3, pool=2, sweep_minutes=7, attempts=4)
DEV = named("dev").changed(
    knowledge=WRITABLE.model_dump(),
    servers={"postgres_uri_secret_arn": SECRET},
    settings={"RAG_ALLOW_ORIGINS": "https://app.example, https://other.example"},
)
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
TRACES = {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}


@pytest.fixture(scope="module")
def service(synthesise: Synthesiser) -> Synthesised:
    return synthesise(DEV)


@pytest.fixture(scope="module")
def stack(service: Synthesised) -> Synthesised:
    return service.stack("knowledge")


def allowed(stack: Synthesised, resource: str) -> set[str]:
    """The actions on resources whose reference has this text."""
    found: set[str] = set()
    for policy in stack.resources("AWS::IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if resource in str(statement["Resource"]):
                actions = statement["Action"]
                found |= {actions} if isinstance(actions, str) else set(actions)
    return found


def through(stack: Synthesised) -> set[str]:
    """The services for which roles may use the key. Each statement about it names some."""
    found: set[str] = set()
    for policy in stack.resources("AWS::IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if KEY in str(statement["Resource"]):
                hosts = statement["Condition"]["StringEquals"]["kms:ViaService"]
                found |= {
                    host["Fn::Join"][1][0].strip(".") if isinstance(host, dict) else host.partition(".")[0]
                    for host in hosts
                }
    return found


def queues(stack: Synthesised) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
    """The queue of tasks and that of dead letters, each with its logical name."""
    named_queues = {name: each["Properties"] for name, each in stack.resources("AWS::SQS::Queue").items()}
    (tasks,) = [(name, each) for name, each in named_queues.items() if "RedrivePolicy" in each]
    (dead,) = [(name, each) for name, each in named_queues.items() if name != tasks[0]]
    return tasks, dead


def variables(stack: Synthesised) -> dict[str, Any]:
    return dict(stack.properties("AWS::Lambda::Function")["Environment"]["Variables"])


def test_every_exception_of_both_rule_packs_has_its_reason(service: Synthesised) -> None:
    for report in service.report["pluginReports"]:
        assert report["violations"] == []
        assert all(len(found["reason"].split()) > 5 for found in report["suppressedViolations"])


def test_cfn_lint_reports_nothing(stack: Synthesised) -> None:
    assert problems_of(stack.file) == []


def test_the_bucket_is_private_encrypted_and_forgets(stack: Synthesised) -> None:
    bucket = stack.properties("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert "AES256" in str(bucket["BucketEncryption"])
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert (rule["ExpirationInDays"], rule["Status"]) == (1, "Enabled")
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    (cors,) = bucket["CorsConfiguration"]["CorsRules"]
    assert cors["AllowedOrigins"] == ["https://app.example", "https://other.example"]
    assert cors["AllowedMethods"] == ["POST"]


def test_bucket_and_queues_refuse_what_is_not_tls(stack: Synthesised) -> None:
    policies = [*stack.resources("AWS::SQS::QueuePolicy").values(), *stack.resources("AWS::S3::BucketPolicy").values()]
    assert len(policies) == 3
    for policy in policies:
        denied = [each for each in policy["Properties"]["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
        assert any(each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}} for each in denied)


def test_the_queue_outlasts_outages_before_it_gives_messages_up(stack: Synthesised) -> None:
    (_, tasks), (dead_name, dead) = queues(stack)
    assert tasks["FifoQueue"]
    assert dead["FifoQueue"]
    assert tasks["RedrivePolicy"]["maxReceiveCount"] >= 100
    assert tasks["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": [dead_name, "Arn"]}
    assert tasks["VisibilityTimeout"] >= 6 * stack.properties("AWS::Lambda::Function")["Timeout"]
    assert tasks["MessageRetentionPeriod"] == dead["MessageRetentionPeriod"] == 14 * 86_400


def test_the_queue_starts_a_bounded_number_of_functions_and_hears_of_each_failure(stack: Synthesised) -> None:
    source = stack.properties("AWS::Lambda::EventSourceMapping")
    assert source["ScalingConfig"] == {"MaximumConcurrency": WRITABLE.index_concurrency}
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["EventSourceArn"] == {"Fn::GetAtt": [queues(stack)[0][0], "Arn"]}
    assert next(iter(stack.resources("AWS::Lambda::Alias"))) in str(source["FunctionName"])
    assert source["FunctionName"]["Fn::Join"][1][-1] == ":live"


def test_the_schedule_sends_the_event_that_the_function_sweeps_on(stack: Synthesised) -> None:
    rule = stack.properties("AWS::Events::Rule")
    assert rule["ScheduleExpression"] == f"rate({WRITABLE.sweep_minutes} minutes)"
    (target,) = rule["Targets"]
    assert target["Input"] == '{"sweep":true}'
    assert target["Arn"] == {"Ref": next(iter(stack.resources("AWS::Lambda::Alias")))}


def test_the_index_function_has_drivers_and_the_other_one_parsers_too(service: Synthesised, stack: Synthesised) -> None:
    for one, names in ((stack, ("Core", "Drivers", "LightRag")), (service, ("Core", "Drivers", "LightRag", "Parsers"))):
        layers = one.resources("AWS::Lambda::LayerVersion")
        described = sorted(each["Properties"]["Description"] for each in layers.values())
        assert described == [f"cragside: {name}" for name in names]
        used = [each["Ref"] for each in one.properties("AWS::Lambda::Function")["Layers"]]
        assert sorted(used) == sorted(layers)
        assert len(used) <= 5


def test_the_index_function_may_only_process_its_queue(stack: Synthesised) -> None:
    (tasks, _), (dead, _) = queues(stack)
    assert allowed(stack, tasks) == {
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        "sqs:SendMessage",
    }
    assert not allowed(stack, dead)
    assert not allowed(stack, "Bucket")
    assert allowed(stack, SECRET) == {"secretsmanager:GetSecretValue"}
    assert allowed(stack, "*") == TRACES


def test_the_function_of_the_api_may_queue_and_take_uploads_but_not_process(
    service: Synthesised, stack: Synthesised
) -> None:
    (tasks, _), (dead, _) = queues(stack)
    assert allowed(service, tasks) == {"sqs:SendMessage"}
    assert not allowed(service, dead)
    assert allowed(service, "/in/*") == {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"}
    assert allowed(service, "UploadBucket") - allowed(service, "/in/*") == {"s3:ListBucket"}


def test_both_functions_have_one_store_and_one_queue(service: Synthesised, stack: Synthesised) -> None:
    indexing, answering = variables(stack), variables(service)
    for said in (indexing, answering):
        assert said["POSTGRES_URI_SECRET"] == SECRET
        assert said["RAG_POSTGRES_CONNECTIONS"] == said["RAG_NEO4J_CONNECTIONS"] == "2"
        assert said["RAG_INDEX_ATTEMPTS"] == "4"
        assert said["RAG_FETCH_PAGES"] == "false"
        assert said["RAG_HOME"].startswith("/tmp/")
        assert "RAG_QUEUE_URL" in said
    assert "RAG_UPLOADS" in answering
    assert "RAG_UPLOADS" not in indexing
    known = {variable_of(name) for name in Settings.model_fields}
    assert {name for name in {*indexing, *answering} if name.startswith("RAG_")} <= known


def test_a_key_of_ones_own_encrypts_queue_bucket_and_logs(synthesise: Synthesiser) -> None:
    operations = {"kms_key_arn": KEY}
    service = synthesise(DEV.changed(operations=operations, settings={}))
    stack = service.stack("knowledge")
    assert all(KEY in str(each) for _, each in queues(stack))
    bucket = stack.properties("AWS::S3::Bucket")
    assert KEY in str(bucket["BucketEncryption"])
    assert "CorsConfiguration" not in bucket
    for one, groups in ((stack, 1), (service, 2)):
        assert [each["Properties"]["KmsKeyId"] for each in one.resources("AWS::Logs::LogGroup").values()] == (
            [KEY] * groups
        )
    for one in (service, stack):
        assert allowed(one, KEY) == {"kms:Decrypt", "kms:GenerateDataKey"}
    assert through(stack) == {"sqs", "secretsmanager"}
    assert through(service) == {"sqs", "s3", "secretsmanager"}
