"""The alarms, who is told of them, the budget and the dashboard."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser, problems_of

from infra.config import Writable, named

pytestmark = pytest.mark.infra

ROOT = Path(__file__).parents[2]
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:postgres-AbC123"
WRITABLE = named("dev").changed(
    observability="full",
    knowledge=Writable().model_dump(),
    servers={"postgres_uri_secret_arn": SECRET},
    operations={
        "alarms": {"email": "ops@example.org", "p95_seconds": 7, "queue_age_seconds": 600},
        "monthly_budget_usd": 50,
    },
)
OF_A_QUEUE = {"QueueAge", "DeadLetters", "IndexErrors", "ThrottlesIndex", "SecretUnreadableIndex"}
OF_CRAGSIDE = {"Degraded", "SecretUnreadable", "SecretUnreadableIndex"}
ALWAYS = {"ApiErrors", "SlowAnswers", "Degraded", "Throttles", "SecretUnreadable"}


@pytest.fixture(scope="module")
def stack(synthesise: Synthesiser) -> Synthesised:
    return synthesise(WRITABLE).stack("observability")


@pytest.fixture(scope="module")
def small(synthesise: Synthesiser) -> Synthesised:
    return synthesise(named("dev").changed(observability="full")).stack("observability")


def alarms(stack: Synthesised) -> dict[str, dict[str, Any]]:
    """The alarms' properties by their names in the code."""
    found = stack.resources("AWS::CloudWatch::Alarm").items()
    return {re.sub(r"^Alarms|[0-9A-F]{8}$", "", name): each["Properties"] for name, each in found}


def figures(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics that an alarm compares."""
    parts = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", ()) if "MetricStat" in each]
    return parts or [alarm]


def test_every_exception_of_both_rule_packs_has_its_reason(synthesise: Synthesiser) -> None:
    for report in synthesise(WRITABLE).report["pluginReports"]:
        assert report["violations"] == []


@pytest.mark.parametrize("kind", ["stack", "small"])
def test_cfn_lint_reports_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    assert problems_of(request.getfixturevalue(kind).file) == []


def test_a_deployment_without_a_queue_has_fewer_alarms(stack: Synthesised, small: Synthesised) -> None:
    assert set(alarms(small)) == ALWAYS
    assert set(alarms(stack)) == ALWAYS | OF_A_QUEUE


def test_each_alarm_leads_to_a_section_of_the_runbook(stack: Synthesised) -> None:
    titles = re.findall(r"^## (.+)", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
    for name, alarm in alarms(stack).items():
        assert alarm["AlarmDescription"].rpartition("docs/runbook.md#")[2] in anchors, name


def test_a_single_bad_period_raises_no_alarm_on_a_rate_and_a_quiet_night_none_at_all(stack: Synthesised) -> None:
    for name, alarm in alarms(stack).items():
        assert alarm["TreatMissingData"] == "notBreaching"
        at_once = name.removesuffix("Index") in ("Throttles", "SecretUnreadable", "DeadLetters")
        assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == ((1, 1) if at_once else (3, 2)), name


def test_the_limits_are_the_environments(stack: Synthesised) -> None:
    found = alarms(stack)
    assert (found["SlowAnswers"]["Threshold"], found["SlowAnswers"]["ExtendedStatistic"]) == (7000, "p95")
    assert (found["QueueAge"]["Threshold"], found["QueueAge"]["MetricName"]) == (600, "ApproximateAgeOfOldestMessage")
    assert found["DeadLetters"]["Threshold"] == 1


def test_figures_of_our_own_are_those_that_the_function_sends(stack: Synthesised) -> None:
    functions = set()
    own = set()
    for alarm in alarms(stack).values():
        for metric in figures(alarm):
            if metric["Namespace"] == "cragside":
                own.add(metric["MetricName"])
                dimensions = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
                assert dimensions.pop("service") == "cragside"
                functions.add(json.dumps(dimensions.pop("function_name")))
                assert not dimensions
    assert own == {"Degraded", "GivenUp", "Requests", "SecretUnreadable"}
    assert len(functions) == 2


def test_alarms_and_budget_may_publish_to_an_encrypted_topic_that_takes_tls_alone(stack: Synthesised) -> None:
    (topic,) = stack.resources("AWS::SNS::Topic")
    (key,) = stack.resources("AWS::KMS::Key")
    assert stack.properties("AWS::SNS::Topic")["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    assert stack.properties("AWS::KMS::Key")["EnableKeyRotation"] is True
    services = {"cloudwatch.amazonaws.com", "budgets.amazonaws.com"}
    for policy in (
        stack.properties("AWS::SNS::TopicPolicy")["PolicyDocument"],
        stack.properties("AWS::KMS::Key")["KeyPolicy"],
    ):
        allowed = [each for each in policy["Statement"] if "Service" in each["Principal"]]
        named_services = (each["Principal"]["Service"] for each in allowed)
        found = {name for each in named_services for name in ([each] if isinstance(each, str) else each)}
        assert found == services
        for each in allowed:
            assert each["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    statements = stack.properties("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    assert any(each["Condition"] == {"Bool": {"aws:SecureTransport": "false"}} for each in statements)
    assert stack.properties("AWS::SNS::Subscription")["Endpoint"] == "ops@example.org"
    for alarm in alarms(stack).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]
    for told in stack.properties("AWS::Budgets::Budget")["NotificationsWithSubscribers"]:
        assert told["Subscribers"] == [{"SubscriptionType": "SNS", "Address": {"Ref": topic}}]


def test_nobody_is_told_where_nobody_is_named(small: Synthesised) -> None:
    for kind in ("SNS::Topic", "KMS::Key", "Budgets::Budget"):
        assert small.resources(f"AWS::{kind}") == {}
    assert not any("AlarmActions" in alarm for alarm in alarms(small).values())


def test_the_dashboard_shows_every_alarm(stack: Synthesised, small: Synthesised) -> None:
    for each in (stack, small):
        body = json.dumps(each.properties("AWS::CloudWatch::Dashboard")["DashboardBody"])
        assert all(name in body for name in each.resources("AWS::CloudWatch::Alarm"))
        assert ("ApproximateAgeOfOldestMessage" in body) is (each is stack)


def test_basic_has_alarms_on_figures_that_cost_nothing_and_no_dashboard(synthesise: Synthesiser) -> None:
    service = synthesise(WRITABLE.changed(observability="basic"))
    stack = service.stack("observability")
    assert set(alarms(stack)) == (ALWAYS | OF_A_QUEUE) - OF_CRAGSIDE
    assert "cragside" not in {figure["Namespace"] for alarm in alarms(stack).values() for figure in figures(alarm)}
    assert alarms(stack)["DeadLetters"]["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert stack.resources("AWS::CloudWatch::Dashboard") == {}


@pytest.mark.parametrize(("kind", "disabled"), [("none", "true"), ("basic", "true"), ("full", None)])
def test_functions_send_figures_only_where_somebody_looks_at_them(
    kind: str, disabled: str | None, synthesise: Synthesiser
) -> None:
    service = synthesise(WRITABLE.changed(observability=kind, operations={}))
    for one in (service, service.stack("knowledge")):
        variables = one.properties("AWS::Lambda::Function")["Environment"]["Variables"]
        assert variables.get("POWERTOOLS_METRICS_DISABLED") == disabled
    assert service.file.with_name("cragside-dev-observability.template.json").exists() is (kind != "none")
