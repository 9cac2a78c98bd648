"""The API by the choices of an operator: who authorises, under which name, how it changes, whose key encrypts."""

import json
import re
from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser, problems_of

from infra.checks import checked
from infra.config import named

pytestmark = pytest.mark.infra

UUID = "01234567-89ab-cdef-0123-456789abcdef"
KEY = f"arn:aws:kms:eu-central-1:123456789012:key/{UUID}"
CERTIFICATE = f"arn:aws:acm:eu-central-1:123456789012:certificate/{UUID}"
CHOSEN: dict[str, Any] = {
    "authorisation": {"issuer": "https://login.example.org/", "audience": ("cragside",)},
    "domain": {"name": "rag.example.org", "certificate_arn": CERTIFICATE},
    "tags": {"team": "knowledge"},
    "canary": True,
    "kms_key_arn": KEY,
}


def stack(synthesise: Synthesiser, **operations: Any) -> Synthesised:
    prod = named("prod").changed(knowledge="none", region="eu-central-1", operations=operations)
    return synthesise(checked(prod.changed(settings={"RAG_THRESHOLD": "0.5"}, reserved_concurrency=5)))


@pytest.fixture
def own(synthesise: Synthesiser) -> Synthesised:
    return stack(synthesise, **CHOSEN)


def routes(stack: Synthesised) -> dict[str, str]:
    """Return the authorisation of each route."""
    found = [each["Properties"] for each in stack.resources("AWS::ApiGatewayV2::Route").values()]
    return {route["RouteKey"]: route["AuthorizationType"] for route in found}


def variables(stack: Synthesised) -> dict[str, Any]:
    return dict(stack.properties("AWS::Lambda::Function")["Environment"]["Variables"])


def test_a_jwt_is_asked_for_by_the_gateway_and_no_token_by_the_application(own: Synthesised) -> None:
    assert routes(own) == {"$default": "JWT", "OPTIONS /{proxy+}": "NONE"}
    authoriser = own.properties("AWS::ApiGatewayV2::Authorizer")["JwtConfiguration"]
    assert authoriser == {"Issuer": "https://login.example.org/", "Audience": ["cragside"]}
    assert variables(own)["RAG_ALLOW_ANONYMOUS"] == "true"
    assert "RAG_API_TOKEN_SECRET" not in variables(own)
    assert not own.resources("AWS::SecretsManager::Secret")


def test_iam_authorises_where_the_environment_says_so(synthesise: Synthesiser) -> None:
    iam = stack(synthesise, authorisation="iam")
    assert routes(iam) == {"$default": "AWS_IAM", "OPTIONS /{proxy+}": "NONE"}
    outputs = {name for name in iam.template["Outputs"] if not name.startswith("PublishOutput")}
    assert outputs == {"Endpoint"}


def test_without_a_choice_the_application_checks_its_token(synthesise: Synthesiser) -> None:
    usual = stack(synthesise, kms_key_arn=KEY)
    assert routes(usual) == {"$default": "NONE"}
    assert "RAG_ALLOW_ANONYMOUS" not in variables(usual)
    assert usual.properties("AWS::SecretsManager::Secret")["KmsKeyId"] == KEY
    granted = str(usual.resources("AWS::IAM::Policy"))
    assert "kms:Decrypt" in granted
    assert KEY in granted


def test_the_api_answers_under_its_own_name_alone(own: Synthesised) -> None:
    domain = own.properties("AWS::ApiGatewayV2::DomainName")
    assert domain["DomainName"] == "rag.example.org"
    assert domain["DomainNameConfigurations"][0]["CertificateArn"] == CERTIFICATE
    assert own.properties("AWS::ApiGatewayV2::Api")["DisableExecuteApiEndpoint"] is True
    assert "DomainTarget" in own.template["Outputs"]
    assert own.properties("AWS::ApiGatewayV2::ApiMapping")


def alarm(name: str) -> str:
    return re.sub(r"^Canary|[0-9A-F]{8}$", "", name)


def figures(share: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics that an alarm compares, each a minute's."""
    found = [each["MetricStat"] for each in share["Metrics"] if "MetricStat" in each]
    assert {each["Period"] for each in found} == {60}
    return [each["Metric"] for each in found]


def dimensions(figure: dict[str, Any]) -> dict[str, Any]:
    return {each["Name"]: each["Value"] for each in figure["Dimensions"]}


def test_a_failing_version_is_taken_back(own: Synthesised) -> None:
    alarms = own.resources("AWS::CloudWatch::Alarm")
    group = own.properties("AWS::CodeDeploy::DeploymentGroup")
    assert group["AlarmConfiguration"]["Enabled"]
    assert {each["Name"]["Ref"] for each in group["AlarmConfiguration"]["Alarms"]} == set(alarms)
    shares = {alarm(name): each["Properties"] for name, each in alarms.items()}
    assert set(shares) == {"Errors", "Failures"}
    ((function, _),) = own.resources("AWS::Lambda::Function").items()
    ((version, _),) = own.resources("AWS::Lambda::Version").items()
    # Runs of the new version alone; and answers of both, as the application answers 500 without an error of Lambda's.
    runs = {figure["MetricName"]: dimensions(figure) for figure in figures(shares["Errors"])}
    new = {
        "FunctionName": {"Ref": function},
        "Resource": {"Fn::Join": ["", [{"Ref": function}, ":live"]]},
        "ExecutedVersion": {"Fn::GetAtt": [version, "Version"]},
    }
    assert runs == {"Errors": new, "Invocations": new}
    ((api, _),) = own.resources("AWS::ApiGatewayV2::Api").items()
    answers = {figure["MetricName"]: dimensions(figure) for figure in figures(shares["Failures"])}
    assert answers == {"5xx": {"ApiId": {"Ref": api}}, "Count": {"ApiId": {"Ref": api}}}
    for share in shares.values():
        (expression,) = [each["Expression"] for each in share["Metrics"] if "Expression" in each]
        assert expression == "IF(part >= 3, 100 * part / whole, 0)"  # a single failure says nothing
        assert share["ComparisonOperator"] == "GreaterThanThreshold"
    assert (shares["Errors"]["Threshold"], shares["Failures"]["Threshold"]) == (5, 2)
    assert group["AutoRollbackConfiguration"]["Enabled"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"
    assert {each["TreatMissingData"] for each in shares.values()} == {"notBreaching"}
    (live,) = own.resources("AWS::Lambda::Alias").values()
    assert "CodeDeployLambdaAliasUpdate" in live["UpdatePolicy"]


def test_the_operators_key_encrypts_the_logs(own: Synthesised) -> None:
    groups = own.resources("AWS::Logs::LogGroup").values()
    assert {group["Properties"]["KmsKeyId"] for group in groups} == {KEY}


def test_every_resource_has_the_operators_tags(own: Synthesised) -> None:
    tags = own.properties("AWS::Lambda::Function")["Tags"]
    assert {"Key": "team", "Value": "knowledge"} in tags
    assert {"Key": "environment", "Value": "prod"} in tags


def test_the_function_has_what_the_environment_sets_and_reserves(own: Synthesised) -> None:
    assert variables(own)["RAG_THRESHOLD"] == "0.5"
    assert own.properties("AWS::Lambda::Function")["ReservedConcurrentExecutions"] == 5


def test_cfn_lint_reports_nothing(own: Synthesised) -> None:
    assert problems_of(own.file) == []


ENDPOINT = "vpce-0123456789abcdef0"


@pytest.fixture
def rest(synthesise: Synthesiser) -> Synthesised:
    environment = named("prod").changed(knowledge="none", api={"kind": "rest"}, reserved_concurrency=5)
    return synthesise(checked(environment))


def methods(stack: Synthesised) -> set[tuple[str, str]]:
    found = [each["Properties"] for each in stack.resources("AWS::ApiGateway::Method").values()]
    return {(each["HttpMethod"], each["AuthorizationType"]) for each in found}


def test_a_rest_api_passes_everything_on_within_limits_and_logs_it(rest: Synthesised) -> None:
    assert methods(rest) == {("ANY", "NONE")}
    assert len(rest.resources("AWS::ApiGateway::Method")) == 2  # the root, and all below it
    stage = rest.properties("AWS::ApiGateway::Stage")
    (settings,) = stage["MethodSettings"]
    assert (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]) == (5, 5)
    assert settings["DataTraceEnabled"] is False
    assert "header" not in stage["AccessLogSetting"]["Format"]
    ((alias, _),) = rest.resources("AWS::Lambda::Alias").items()
    for method in rest.resources("AWS::ApiGateway::Method").values():
        integration = method["Properties"]["Integration"]
        assert {"Ref": alias} in integration["Uri"]["Fn::Join"][1]
        assert (integration["Type"], integration["TimeoutInMillis"]) == ("AWS_PROXY", 29_000)
    assert not rest.resources("AWS::ApiGateway::Account")  # the account's, which other APIs share


def test_an_existing_web_acl_stands_before_the_api(synthesise: Synthesiser) -> None:
    acl = f"arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/shared/{UUID}"
    shared = synthesise(checked(named("dev").changed(api={"kind": "rest", "web_acl_arn": acl})))
    assert not shared.resources("AWS::WAFv2::WebACL")
    association = shared.properties("AWS::WAFv2::WebACLAssociation")
    assert association["WebACLArn"] == acl
    assert "/stages/" in json.dumps(association["ResourceArn"])


def test_a_private_api_answers_its_endpoints_alone(synthesise: Synthesiser) -> None:
    api = {"kind": "private", "vpc_endpoint_ids": [ENDPOINT]}
    private = synthesise(checked(named("dev").changed(api=api, operations={"authorisation": "iam"})))
    said = private.properties("AWS::ApiGateway::RestApi")
    assert said["EndpointConfiguration"] == {"Types": ["PRIVATE"], "VpcEndpointIds": [ENDPOINT]}
    denied = [each for each in said["Policy"]["Statement"] if each["Effect"] == "Deny"]
    assert [each["Condition"] for each in denied] == [{"StringNotEquals": {"aws:SourceVpce": [ENDPOINT]}}]
    assert methods(private) == {("ANY", "AWS_IAM"), ("OPTIONS", "NONE")}


def test_a_rest_api_has_a_name_of_its_own(synthesise: Synthesiser) -> None:
    domain = {"name": "rag.example.org", "certificate_arn": CERTIFICATE}
    environment = named("dev").changed(api={"kind": "rest"}, region="eu-central-1", operations={"domain": domain})
    named_api = synthesise(checked(environment))
    assert named_api.properties("AWS::ApiGateway::DomainName")["DomainName"] == "rag.example.org"
    assert named_api.properties("AWS::ApiGateway::RestApi")["DisableExecuteApiEndpoint"] is True
    assert named_api.template["Outputs"]["Endpoint"]["Value"] == "https://rag.example.org/"
    assert "DomainTarget" in named_api.template["Outputs"]


def test_cfn_lint_reports_nothing_of_a_rest_api(rest: Synthesised) -> None:
    assert problems_of(rest.file) == []
