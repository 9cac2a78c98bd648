"""The API by the choices of an operator: who authorises, under which name, how it changes, whose key encrypts."""

from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser, problems_of

from infra.environments import named
from infra.environments.checks import checked

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
    outputs = {name for name in iam.template["Outputs"] if not name.startswith("ExportsOutput")}
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


def test_a_failing_version_is_taken_back(own: Synthesised) -> None:
    alarms = own.resources("AWS::CloudWatch::Alarm")
    group = own.properties("AWS::CodeDeploy::DeploymentGroup")
    assert group["AlarmConfiguration"]["Enabled"]
    assert {each["Name"]["Ref"] for each in group["AlarmConfiguration"]["Alarms"]} == set(alarms)
    figures = {each["Properties"]["MetricName"]: each["Properties"] for each in alarms.values()}
    assert set(figures) == {"Errors", "Failures"}
    # The application answers 500 without an error of Lambda's: what it sends by itself tells of it.
    ((function, _),) = own.resources("AWS::Lambda::Function").items()
    assert figures["Failures"]["Namespace"] == "cragside"
    dimensions = {each["Name"]: each["Value"] for each in figures["Failures"]["Dimensions"]}
    assert dimensions == {"service": "cragside", "function_name": {"Ref": function}}
    assert group["AutoRollbackConfiguration"]["Enabled"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent5Minutes"
    assert {each["TreatMissingData"] for each in figures.values()} == {"notBreaching"}
    assert {(each["Period"], each["Threshold"]) for each in figures.values()} == {(60, 1)}
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
