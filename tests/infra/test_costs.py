"""Costs of an environment, from its templates."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from infra.costs import main, report
from infra.pricing.charges import RULES, bill
from infra.pricing.month import HOURS, Month
from infra.pricing.prices import Price, load_prices, load_usage
from infra.pricing.templates import in_template

PRICES, USAGE = load_prices(), load_usage()
FUNCTION = {
    "Type": "AWS::Lambda::Function",
    "Properties": {"MemorySize": 2048, "Environment": {"Variables": {"RAG_HOME": "/opt/knowledge"}}},
}


def billed(requests: float = 0, milliseconds: float | None = None, **resources: dict[str, Any]) -> dict[str, float]:
    """The quantities of a month, by price."""
    quantities = bill(in_template({"Resources": resources}), Month(requests, USAGE, milliseconds)).quantities
    return {price: quantity for (_, price), quantity in quantities.items()}


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


def with_properties(found: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {**found, "Properties": {**found["Properties"], **properties}}


def test_a_function_is_billed_by_its_requests_and_by_its_memory_times_its_time() -> None:
    found = billed(1_000_000, 100, Enrich=FUNCTION)
    assert found["lambda-requests"] == 1
    assert found["lambda-x86_64"] == pytest.approx(2 * 100_000)
    assert billed(1_000_000, 100, Enrich=with_properties(FUNCTION, Architectures=["arm64"]))["lambda-arm64"] > 0


def test_the_time_of_a_request_is_what_benchmarks_measured() -> None:
    cold = 0.01 * (437 + 920)
    assert billed(1000, Enrich=FUNCTION)["lambda-x86_64"] == pytest.approx(2 * (15 + cold))
    variables = {"RAG_HOME": "", "OLLAMA_BASE_URL": "", "SEARXNG_HOST": ""}
    web = with_properties(FUNCTION, Environment={"Variables": variables})
    warm = 0.8 * 343 + 0.2 * 820 * 1.03
    assert billed(1000, Enrich=web)["lambda-x86_64"] == pytest.approx(2 * (warm + cold))


def test_a_snapshot_costs_by_itself_and_saves_the_start() -> None:
    snap = with_properties(FUNCTION, SnapStart={"ApplyOn": "PublishedVersions"})
    version = resource("AWS::Lambda::Version", FunctionName={"Ref": "Enrich"})
    found = billed(1000, Enrich=snap, Version=version)
    assert found["lambda-x86_64"] == pytest.approx(2 * 15)
    assert found["snapstart-cache"] == pytest.approx(2 * HOURS * 3600)
    assert found["snapstart-restore"] == pytest.approx(2 * 10)
    assert "snapstart-cache" not in billed(1000, Enrich=FUNCTION, Version=version)


def test_a_function_behind_a_queue_is_billed_for_documents() -> None:
    alias = resource("AWS::Lambda::Alias", FunctionName={"Ref": "Index"})
    source = resource(
        "AWS::Lambda::EventSourceMapping",
        FunctionName={"Ref": "Live"},
        EventSourceArn={"Fn::GetAtt": ["Tasks", "Arn"]},
    )
    queues = {"Tasks": resource("AWS::SQS::Queue", FifoQueue=True), "Dead": resource("AWS::SQS::Queue")}
    found = billed(1_000_000, Index=FUNCTION, Live=alias, Source=source, **queues)
    assert found["lambda-requests"] == pytest.approx(1000 / 1e6)
    assert found["lambda-x86_64"] == pytest.approx(2 * 1000 * 20 / 14.6)
    assert found["queue"] == pytest.approx(3000 / 1e6)  # the other is polled as well
    assert found["fifo-queue"] == pytest.approx((5 * HOURS * 3600 / 20 + 3000) / 1e6)


def test_a_function_that_only_helps_while_deploying_costs_nothing() -> None:
    assert not billed(1_000_000, Helper=resource("AWS::Lambda::Function", MemorySize=128))


def test_logs_are_billed_by_what_a_request_writes_and_for_how_long_it_stays() -> None:
    group = resource("AWS::Logs::LogGroup", RetentionInDays=365)
    stage = resource("AWS::ApiGatewayV2::Stage", AccessLogSettings={"DestinationArn": {"Fn::GetAtt": ["Group", "Arn"]}})
    found = billed(2_000_000, Group=group, Stage=stage)
    assert found["log-ingestion"] == pytest.approx(1)
    assert found["log-storage"] == pytest.approx(365 / 30.4)
    assert not billed(2_000_000, Group=group)


def test_hourly_prices_run_all_month() -> None:
    launch = {"InstanceType": "g4dn.xlarge", "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}]}
    found = billed(
        Endpoint=resource("AWS::EC2::VPCEndpoint", VpcEndpointType="Interface", SubnetIds=["a", "b"]),
        Gateway=resource("AWS::EC2::VPCEndpoint", VpcEndpointType="Gateway"),
        Launch=resource("AWS::EC2::LaunchTemplate", LaunchTemplateData=launch),
        Group=resource(
            "AWS::AutoScaling::AutoScalingGroup",
            MaxSize="1",
            LaunchTemplate={"LaunchTemplateId": {"Ref": "Launch"}},
        ),
        Volume=resource("AWS::EC2::Volume", Size=50, VolumeType="gp3"),
        Policy=resource("AWS::DLM::LifecyclePolicy"),
    )
    assert found == {"interface-endpoint": 2 * HOURS, "g4dn.xlarge": HOURS, "volume-gp3": 150, "snapshot": 50}


def test_an_alarm_is_billed_by_its_metrics() -> None:
    queries = [{"MetricStat": {}}, {"MetricStat": {}}, {"Expression": "a / b"}]
    assert billed(Alarm=resource("AWS::CloudWatch::Alarm", Metrics=queries)) == {"alarm": 2}
    assert billed(Alarm=resource("AWS::CloudWatch::Alarm", MetricName="Errors")) == {"alarm": 1}


def test_the_report_adds_fixed_and_variable_cost() -> None:
    template = {
        "Resources": {"Secret": resource("AWS::SecretsManager::Secret"), "Api": resource("AWS::ApiGatewayV2::Api")}
    }
    shown = report(in_template(template), PRICES, USAGE)
    reading = 2 * HOURS * 12 / 1e6 * 5
    rows = {line[:46].strip(): line[46:].split() for line in shown.splitlines() if line.startswith("  ")}
    assert rows["secrets"] == ["0.40"]
    assert rows["requests to the API"] == ["0.01", "1.00", "10.00"]
    answers = [8000 * requests / 1e9 * 0.09 for requests in (1e4, 1e6, 1e7)]
    totals = [0.4 + reading + api + answer for api, answer in zip((0.01, 1, 10), answers, strict=True)]
    assert rows["total"] == [f"{total:,.2f}" for total in totals]


def test_the_report_says_which_prices_were_not_checked() -> None:
    shown = report(in_template({"Resources": {"A": resource("AWS::CloudWatch::Alarm")}}), PRICES, USAGE)
    assert "Not checked, from memory: alarm." in shown
    checked = report(in_template({"Resources": {"S": resource("AWS::SecretsManager::Secret")}}), PRICES, USAGE)
    assert "Not checked, from memory: none." in checked


def test_each_price_names_its_page() -> None:
    with pytest.raises(ValidationError):
        Price(usd=1, unit="hour", source="https://example.org/")
    assert not PRICES.free.keys() & RULES.keys()
    assert all(len(reason.split()) > 1 for reason in PRICES.free.values())


def test_the_command_ends_with_the_types_that_have_no_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "`make synth`" in capsys.readouterr().err
    unknown = {
        "Cluster": resource("AWS::RDS::DBCluster"),
        "Host": resource("AWS::AutoScaling::AutoScalingGroup", MaxSize="1", LaunchTemplate={"Ref": "Launch"}),
        "Launch": resource("AWS::EC2::LaunchTemplate", LaunchTemplateData={"InstanceType": "x9.huge"}),
        "Clean": resource("Custom::S3AutoDelete"),
    }
    template = {"Resources": unknown}
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "some.template.json"}}
    manifest = {"artifacts": {"some": stack, "tree": {"type": "cdk:tree"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "some.template.json").write_text(json.dumps(template))
    (tmp_path / "left-from-before.template.json").write_text("{}")
    assert main([str(tmp_path), "--milliseconds", "250"]) == 1
    told = capsys.readouterr()
    assert told.err == "No price in infra/prices.toml: AWS::RDS::DBCluster, x9.huge\n"
    assert "250 ms a request, as given" in told.out


@pytest.mark.parametrize("given", ["abc", "nan", "inf", "0", "-5"])
def test_milliseconds_that_nobody_can_have_measured_are_refused(tmp_path: Path, given: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path), f"--milliseconds={given}"])
    assert "is no number of milliseconds above 0" in capsys.readouterr().err
