import json
import re
from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser, problems_of

from cragside.settings import Settings, variable_of
from infra.config import NAMES, Environment, KnowledgeBucket, named

pytestmark = pytest.mark.infra

EXISTING = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:cragside/token-AbC123"
BUCKET = KnowledgeBucket(uri="s3://some-bucket/bases/demo", sha256="ab" * 32)
VARIANTS = {
    **{name: named(name) for name in NAMES},
    "bucket": named("staging").changed(knowledge=BUCKET.model_dump()),
    "secret": named("prod").changed(token_secret_arn=EXISTING, reserved_concurrency=5, architecture="arm64"),
}


@pytest.fixture(params=VARIANTS)
def environment(request: pytest.FixtureRequest) -> Environment:
    return VARIANTS[request.param]


@pytest.fixture
def stack(environment: Environment, synthesise: Synthesiser) -> Synthesised:
    return synthesise(environment)


def statements(stack: Synthesised) -> list[dict[str, Any]]:
    return [
        statement
        for policy in stack.resources("AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def actions(statement: dict[str, Any]) -> set[str]:
    return {statement["Action"]} if isinstance(statement["Action"], str) else set(statement["Action"])


def variables(stack: Synthesised) -> dict[str, Any]:
    return dict(stack.properties("AWS::Lambda::Function")["Environment"]["Variables"])


# cdk-nag has run when the stack is there: a finding that nobody acknowledged fails the synthesis.
def test_every_exception_to_aws_solutions_has_its_reason(stack: Synthesised) -> None:
    (report,) = [found for found in stack.report["pluginReports"] if found["pluginName"] == "AwsSolutions"]
    assert report["violations"] == []
    assert {found["ruleName"].partition("[")[0] for found in report["suppressedViolations"]} <= {
        "AwsSolutions-APIG4",
        "AwsSolutions-IAM4",
        "AwsSolutions-IAM5",
        "AwsSolutions-L1",
        "AwsSolutions-SMG4",
    }
    assert all(len(found["reason"].split()) > 5 for found in report["suppressedViolations"])


def test_cfn_lint_reports_nothing(stack: Synthesised) -> None:
    assert problems_of(stack.file) == []


def test_the_template_has_the_name_of_the_secret_but_not_its_value(
    stack: Synthesised, environment: Environment
) -> None:
    generated = stack.resources("AWS::SecretsManager::Secret")
    if environment.token_secret_arn:
        assert not generated
        assert variables(stack)["RAG_API_TOKEN_SECRET"] == EXISTING
    else:
        ((name, secret),) = generated.items()
        assert "SecretString" not in secret["Properties"]
        assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] == 43
        assert variables(stack)["RAG_API_TOKEN_SECRET"] == {"Ref": name}
    assert "RAG_API_TOKEN" not in variables(stack)
    assert "resolve:secretsmanager" not in json.dumps(stack.template)


def test_every_log_group_forgets_after_the_days_of_its_environment(
    stack: Synthesised, environment: Environment
) -> None:
    groups = stack.resources("AWS::Logs::LogGroup")
    assert len(groups) == 2
    assert {group["Properties"]["RetentionInDays"] for group in groups.values()} == {environment.log_retention_days}


def test_the_function_and_the_api_write_their_own_log_groups(stack: Synthesised) -> None:
    groups = set(stack.resources("AWS::Logs::LogGroup"))
    function = stack.properties("AWS::Lambda::Function")["LoggingConfig"]["LogGroup"]["Ref"]
    (api, _attribute) = stack.properties("AWS::ApiGatewayV2::Stage")["AccessLogSettings"]["DestinationArn"][
        "Fn::GetAtt"
    ]
    assert {function, api} == groups
    # Services of AWS may write below this name; elsewhere each API adds to a policy that is soon full.
    prefix, once = stack.resources("AWS::Logs::LogGroup")[api]["Properties"]["LogGroupName"]["Fn::Join"][1]
    assert prefix.startswith("/aws/vendedlogs/cragside-")
    assert once == {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}


def test_the_access_log_holds_neither_headers_nor_bodies(stack: Synthesised) -> None:
    line = json.loads(stack.properties("AWS::ApiGatewayV2::Stage")["AccessLogSettings"]["Format"])
    assert line["status"] == "$context.status"
    assert not re.search(r"header|authorizer|body|query", json.dumps(line), re.IGNORECASE)


def test_data_outlives_the_stack_where_it_should(stack: Synthesised, environment: Environment) -> None:
    wanted = "Retain" if environment.keep_data else "Delete"
    for kind in ("AWS::Logs::LogGroup", "AWS::SecretsManager::Secret"):
        assert {found["DeletionPolicy"] for found in stack.resources(kind).values()} <= {wanted}


def test_the_role_has_only_the_permissions_that_the_function_needs(
    stack: Synthesised, environment: Environment
) -> None:
    allowed = set().union(*(actions(statement) for statement in statements(stack)))
    wanted = {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "secretsmanager:GetSecretValue",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    }
    assert allowed == wanted | ({"s3:GetObject"} if isinstance(environment.knowledge, KnowledgeBucket) else set())
    roles = {
        role["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Service"]: role["Properties"]
        for role in stack.resources("AWS::IAM::Role").values()
    }
    assert "ManagedPolicyArns" not in roles.pop("lambda.amazonaws.com")
    assert set(roles) == ({"codedeploy.amazonaws.com"} if environment.operations.canary else set())


def test_only_tracing_is_allowed_on_every_resource(stack: Synthesised) -> None:
    everywhere = [statement for statement in statements(stack) if statement["Resource"] == "*"]
    assert [actions(statement) for statement in everywhere] == [{"xray:PutTelemetryRecords", "xray:PutTraceSegments"}]


def test_a_bucket_is_read_below_the_prefix_of_the_store(synthesise: Synthesiser) -> None:
    stack = synthesise(VARIANTS["bucket"])
    (reading,) = [statement for statement in statements(stack) if "s3:GetObject" in actions(statement)]
    assert reading["Resource"]["Fn::Join"][1][-1] == ":s3:::some-bucket/bases/demo/*"
    assert variables(stack)["RAG_HOME"] == BUCKET.uri
    assert variables(stack)["RAG_HOME_SHA256"] == BUCKET.sha256


def test_a_baked_store_becomes_a_layer_with_a_folder_of_its_own(synthesise: Synthesiser) -> None:
    stack = synthesise(named("dev"))
    assert variables(stack)["RAG_HOME"] == "/opt/knowledge"
    assert [path.parent.name for path in stack.file.parent.glob("asset.*/*/baked.json")] == ["knowledge"]
    assert list(stack.file.parent.glob("asset.*/knowledge/default/store.sqlite3"))


def test_the_layers_are_made_for_the_runtime_of_the_function(stack: Synthesised, environment: Environment) -> None:
    function = stack.properties("AWS::Lambda::Function")
    layers = stack.resources("AWS::Lambda::LayerVersion")
    assert {layer["Ref"] for layer in function["Layers"]} == set(layers)
    assert len(layers) == (3 if environment.name == "dev" else 2)
    assert function["Runtime"] == f"python{environment.python}"
    assert function["Architectures"] == [environment.architecture]
    described = {layer["Properties"]["Description"]: layer["Properties"] for layer in layers.values()}
    for program in (described["cragside: Core"], described["cragside: LightRag"]):
        assert program["CompatibleRuntimes"] == [function["Runtime"]]
        assert program["CompatibleArchitectures"] == function["Architectures"]


def test_a_store_is_for_any_runtime_and_processor(synthesise: Synthesiser) -> None:
    layers = synthesise(named("dev")).resources("AWS::Lambda::LayerVersion").values()
    (store,) = [
        layer["Properties"] for layer in layers if layer["Properties"]["Description"] == "cragside: a baked store"
    ]
    assert not {"CompatibleRuntimes", "CompatibleArchitectures"} & store.keys()


def test_the_function_answers_before_the_api_gives_up(stack: Synthesised, environment: Environment) -> None:
    function = stack.properties("AWS::Lambda::Function")
    integration = stack.properties("AWS::ApiGatewayV2::Integration")
    assert function["Timeout"] == environment.timeout_seconds < 29
    assert integration["TimeoutInMillis"] == 29_000


def test_the_function_is_traced_and_has_its_size(stack: Synthesised, environment: Environment) -> None:
    function = stack.properties("AWS::Lambda::Function")
    assert function["TracingConfig"] == {"Mode": "Active"}
    assert "EphemeralStorage" not in function
    assert function["MemorySize"] == environment.memory_mb
    assert function.get("ReservedConcurrentExecutions") == environment.reserved_concurrency
    assert function["Handler"] == "handler.handler"


def test_a_snapshot_is_taken_where_the_environment_says_so(stack: Synthesised, environment: Environment) -> None:
    snap = stack.properties("AWS::Lambda::Function").get("SnapStart")
    assert snap == ({"ApplyOn": "PublishedVersions"} if environment.snap_start else None)


def test_the_api_calls_a_published_version_by_its_alias(stack: Synthesised) -> None:
    ((alias, live),) = stack.resources("AWS::Lambda::Alias").items()
    ((version, _),) = stack.resources("AWS::Lambda::Version").items()
    assert live["Properties"]["FunctionVersion"] == {"Fn::GetAtt": [version, "Version"]}
    assert stack.properties("AWS::ApiGatewayV2::Integration")["IntegrationUri"] == {"Ref": alias}


def test_the_only_public_thing_is_the_api_and_it_is_throttled(stack: Synthesised, environment: Environment) -> None:
    canary = {"AWS::CloudWatch::Alarm", "AWS::CodeDeploy::Application", "AWS::CodeDeploy::DeploymentGroup"}
    assert {found["Type"] for found in stack.template["Resources"].values()} <= {
        *(canary if environment.operations.canary else ()),
        "AWS::ApiGatewayV2::Api",
        "AWS::ApiGatewayV2::Integration",
        "AWS::ApiGatewayV2::Route",
        "AWS::ApiGatewayV2::Stage",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::Lambda::Alias",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Lambda::Version",
        "AWS::Logs::LogGroup",
        "AWS::SecretsManager::Secret",
    }
    permission = stack.properties("AWS::Lambda::Permission")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert {"Ref": next(iter(stack.resources("AWS::ApiGatewayV2::Api")))} in permission["SourceArn"]["Fn::Join"][1]
    assert stack.properties("AWS::ApiGatewayV2::Stage")["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": environment.fitting_throttle.requests_per_second,
        "ThrottlingBurstLimit": environment.fitting_throttle.burst,
    }


def test_earlier_versions_stay_for_a_rollback(stack: Synthesised) -> None:
    for version in stack.resources("AWS::Lambda::Version").values():
        assert version["DeletionPolicy"] == version["UpdateReplacePolicy"] == "Retain"


def test_traces_to_x_ray_are_switched_off_with_their_permissions(synthesise: Synthesiser) -> None:
    silent = synthesise(named("dev").changed(xray=False))
    assert "TracingConfig" not in silent.properties("AWS::Lambda::Function")
    assert not [action for each in statements(silent) for action in actions(each) if action.startswith("xray:")]


def test_tmp_has_the_size_that_the_environment_says(synthesise: Synthesiser) -> None:
    large = synthesise(VARIANTS["bucket"].changed(snap_start=False, tmp_mb=2048))
    assert large.properties("AWS::Lambda::Function")["EphemeralStorage"] == {"Size": 2048}


def test_a_token_in_a_parameter_is_named_and_read_and_no_secret_is_made(synthesise: Synthesiser) -> None:
    stack = synthesise(named("dev").changed(token_parameter="/cragside/dev/token"))
    assert not stack.resources("AWS::SecretsManager::Secret")
    named_by = variables(stack)["RAG_API_TOKEN_SECRET"]
    assert named_by["Fn::Join"][1][-1] == ":parameter/cragside/dev/token"
    (reading,) = [each for each in statements(stack) if "ssm:GetParameter" in actions(each)]
    assert (reading["Resource"], actions(reading)) == (named_by, {"ssm:GetParameter"})
    assert stack.template["Outputs"]["TokenSecret"]["Value"] == named_by


def test_a_bootstrap_of_its_own_bounds_every_role(synthesise: Synthesiser) -> None:
    own = {"qualifier": "teama", "permissions_boundary": "Bounds"}
    stack = synthesise(named("prod").changed(knowledge="none", bootstrap=own))
    for role in stack.resources("AWS::IAM::Role").values():
        assert json.dumps(role["Properties"]["PermissionsBoundary"]).endswith(':policy/Bounds"]]}')
    manifest = json.loads((stack.file.parent / "manifest.json").read_text())
    deploying = manifest["artifacts"]["cragside-prod-service"]["properties"]["assumeRoleArn"]
    assert ":role/cdk-teama-deploy-role-" in deploying


def test_environments_of_any_name_share_an_account(synthesise: Synthesiser) -> None:
    first, second = (synthesise(named(name, "dev")) for name in ("pr-1", "pr-2"))
    assert first.file.name == "cragside-pr-1-service.template.json"
    assert json.dumps(first.template).replace("pr-1", "pr-2") == json.dumps(second.template)
    # Nothing but the access log has a name of its own, and that has the stack's id in it.
    physical = [name for each in first.template["Resources"].values() for name in each["Properties"]]
    assert not {"FunctionName", "RoleName", "BucketName", "QueueName", "SecretName"} & {
        name for name in physical if name not in ("FunctionName",)
    }


def test_cors_stays_closed_and_every_path_reaches_the_application(stack: Synthesised) -> None:
    assert "CorsConfiguration" not in stack.properties("AWS::ApiGatewayV2::Api")
    assert stack.properties("AWS::ApiGatewayV2::Route")["RouteKey"] == "$default"


def test_the_application_knows_every_variable_of_the_function(stack: Synthesised) -> None:
    known = {variable_of(name) for name in Settings.model_fields}
    assert {name for name in variables(stack) if name.startswith("RAG_")} <= known


def test_the_outputs_are_the_address_and_the_secret(stack: Synthesised) -> None:
    for_people = {name for name in stack.template["Outputs"] if not name.startswith("PublishOutput")}
    assert for_people == {"Endpoint", "TokenSecret"}


def test_the_same_folders_give_the_same_template(synthesise: Synthesiser) -> None:
    dev = named("dev")
    assert synthesise.anew(dev, "again").template == synthesise(dev).template


def test_files_made_under_a_private_umask_are_readable_for_lambda(tmp_path):
    from infra.function import readable

    (tmp_path / "store" / "default").mkdir(parents=True)
    (tmp_path / "store" / "default" / "store.sqlite3").write_text("")
    for path in (tmp_path / "store" / "default", tmp_path / "store"):
        path.chmod(0o700)
    (tmp_path / "store" / "default" / "store.sqlite3").chmod(0o600)
    assert readable(tmp_path / "store", "knowledge").local.try_bundle(str(tmp_path / "out"))
    made = {str(path.relative_to(tmp_path / "out")): path.stat().st_mode & 0o777 for path in tmp_path.rglob("out/**/*")}
    assert made == {"knowledge": 0o755, "knowledge/default": 0o755, "knowledge/default/store.sqlite3": 0o644}
