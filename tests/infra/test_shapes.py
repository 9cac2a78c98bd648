"""Three environments in four shapes, and what a change from one shape to another does."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from synthesis import SHAPES, Synthesised, Synthesiser, problems_of

from infra.checks import checked
from infra.config import NAMES, Environment, named
from tests.services import tools

pytestmark = pytest.mark.infra

STACKS = {
    "baked": {"service", "observability"},
    "generations": {"knowledge", "service", "observability"},
    "managed": {"network", "knowledge", "service", "observability"},
    "private": {"service", "observability"},
}
ROOT = Path(__file__).parents[2]
SAM = "aws-sam-cli==1.170.0"
PAIRS = list(product(NAMES, SHAPES))


def environment(name: str, shape: str) -> Environment:
    own = named(name)
    knowledge = {} if own.knowledge else {"knowledge": "none"}
    return checked(own.changed(**(knowledge | dict(SHAPES[shape]))))


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    name, shape = request.param
    return name, shape


@pytest.fixture
def stack(pair: tuple[str, str], synthesise: Synthesiser) -> Synthesised:
    return synthesise(environment(*pair))


def templates(stack: Synthesised) -> list[Path]:
    return sorted(stack.file.parent.glob("*.template.json"))


# cdk-nag has run when the stack is there: a finding that nobody acknowledged fails the synthesis.
def test_every_shape_is_synthesised_and_its_exceptions_have_reasons(stack: Synthesised, pair: tuple[str, str]) -> None:
    name, shape = pair
    found = {path.name.removesuffix(".template.json").removeprefix(f"cragside-{name}-") for path in templates(stack)}
    assert found == STACKS[shape]
    assert {f"cragside-{name}-{each}" for each in found} == set(environment(*pair).stack_names)
    packs = {report["pluginName"]: report for report in stack.report["pluginReports"]}
    for pack in ("AwsSolutions", "Serverless"):
        assert packs[pack]["violations"] == []
        assert all(len(accepted["reason"].split()) > 5 for accepted in packs[pack]["suppressedViolations"])


def test_the_cdk_has_nothing_to_warn_of(stack: Synthesised) -> None:
    manifest = json.loads((stack.file.parent / "manifest.json").read_text())
    flags = manifest["artifacts"]["aws-cdk-lib/feature-flag-report"]["properties"]["flags"]
    unset = {name: flag for name, flag in flags.items() if "userValue" not in flag}
    # What the CDK does unless it is told is as good as what it recommends.
    behaviour = {name: flag.get("unconfiguredBehavesLike", {}).get("v2", False) for name, flag in unset.items()}
    assert [name for name, flag in unset.items() if behaviour[name] != flag["recommendedValue"]] == []
    said = [path.read_text() for path in stack.file.parent.glob("*.metadata.json")]
    assert said
    assert not [text for text in said if "aws:cdk:warning" in text]


def test_cfn_lint_reports_nothing(stack: Synthesised) -> None:
    assert problems_of(*templates(stack)) == []


def exports(stack: Synthesised) -> dict[str, set[str]]:
    """The exports that each stack makes, and those that it needs."""
    found: dict[str, set[str]] = {"made": set(), "needed": set()}
    for path in templates(stack):
        template = json.loads(path.read_text())
        found["made"] |= {json.dumps(out["Export"]) for out in template.get("Outputs", {}).values() if "Export" in out}
        found["needed"] |= set(re.findall(r'"Fn::ImportValue": [^}]+', json.dumps(template)))
    return found


@pytest.mark.parametrize(("before", "after"), list(permutations(SHAPES, 2)), ids="-to-".join)
def test_no_change_of_shape_removes_an_export_that_somebody_needs(
    before: str, after: str, synthesise: Synthesiser
) -> None:
    old, new = (synthesise(environment("prod", shape)) for shape in (before, after))
    assert not exports(old)["needed"] & (exports(old)["made"] - exports(new)["made"])
    # None is needed at all: stacks read each other's outputs, which may go.
    assert exports(old) == exports(new) == {"made": set(), "needed": set()}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_output_that_a_stack_reads_is_there(shape: str, synthesise: Synthesiser) -> None:
    written = {
        path.name.partition(".")[0]: json.loads(path.read_text())
        for path in templates(synthesise(environment("prod", shape)))
    }
    read = [each for template in written.values() for each in outputs_read(template)]
    assert bool(read)
    for each in read:
        assert each["OutputName"] in written[each["StackName"]]["Outputs"]


def outputs_read(value: Any) -> Iterator[dict[str, str]]:
    """The outputs of other stacks that a part of a template reads."""
    if isinstance(value, dict):
        if "Fn::GetStackOutput" in value:
            yield value["Fn::GetStackOutput"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from outputs_read(each)


def test_another_range_of_addresses_makes_another_network_and_moves_the_functions(synthesise: Synthesiser) -> None:
    old = environment("prod", "managed")
    moved = old.changed(network={"cidr": "10.65.0.0/20", "s3_prefix_list_id": "pl-0123456789abcdef0"})
    first, second = synthesise(old), synthesise(moved)
    placed = [stack.properties("AWS::Lambda::Function")["VpcConfig"] for stack in (first, second)]
    # The template of the functions has to differ, or nobody would tell them of their new subnets.
    assert placed[0] != placed[1]


def managed(synthesise: Synthesiser) -> Synthesised:
    return synthesise(environment("prod", "managed"))


def group(network: Synthesised, described: str) -> tuple[str, dict[str, Any]]:
    """The security group with this description: its logical name and properties."""
    (found,) = [
        (name, each["Properties"])
        for name, each in network.resources("AWS::EC2::SecurityGroup").items()
        if each["Properties"]["GroupDescription"] == described
    ]
    return found


def test_functions_reach_the_servers_ports_and_the_endpoints_and_nothing_else(synthesise: Synthesiser) -> None:
    network = managed(synthesise).stack("network")
    name, functions = group(network, "cragside: functions")
    endpoints, _ = group(network, "cragside: endpoints of AWS")
    assert "SecurityGroupIngress" not in functions
    out = {
        (rule.get("CidrIp") or rule["DestinationSecurityGroupId"]["Fn::GetAtt"][0], rule["FromPort"], rule["ToPort"])
        for rule in functions["SecurityGroupEgress"]
    }
    servers = {("10.64.0.0/20", port, port) for port in (5432, 8080, 11434)} | {
        ("10.1.0.0/16", port, port) for port in (5432, 8080, 11434)
    }
    assert out == servers | {(endpoints, 443, 443)}
    (to_s3,) = network.resources("AWS::EC2::SecurityGroupEgress").values()
    assert to_s3["Properties"]["GroupId"] == {"Fn::GetAtt": [name, "GroupId"]}
    assert to_s3["Properties"]["DestinationPrefixListId"] == "pl-0123456789abcdef0"
    assert (to_s3["Properties"]["FromPort"], to_s3["Properties"]["ToPort"]) == (443, 443)


def test_a_new_network_has_no_way_out(synthesise: Synthesiser) -> None:
    network = managed(synthesise).stack("network")
    for kind in ("Route", "InternetGateway", "NatGateway"):
        assert not network.resources(f"AWS::EC2::{kind}")


def test_the_endpoints_are_those_that_functions_call_and_serve_this_account(synthesise: Synthesiser) -> None:
    found = managed(synthesise).stack("network").resources("AWS::EC2::VPCEndpoint").values()
    by_kind = {
        kind: [each["Properties"] for each in found if each["Properties"]["VpcEndpointType"] == kind]
        for kind in ("Gateway", "Interface")
    }
    assert [str(each["ServiceName"]).rpartition(".")[2].strip("']}") for each in by_kind["Gateway"]] == ["s3"]
    assert sorted(each["ServiceName"].rpartition(".")[2] for each in by_kind["Interface"]) == ["secretsmanager", "sqs"]
    for each in (*by_kind["Gateway"], *by_kind["Interface"]):
        (statement,) = each["PolicyDocument"]["Statement"]
        assert statement["Condition"] == {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}}
    for each in by_kind["Interface"]:
        assert each["PrivateDnsEnabled"]
        assert len(each["SubnetIds"]) == 2


def test_functions_alone_reach_s3_by_its_endpoint(synthesise: Synthesiser) -> None:
    network = managed(synthesise).stack("network")
    (gateway,) = (
        each["Properties"]
        for each in network.resources("AWS::EC2::VPCEndpoint").values()
        if each["Properties"]["VpcEndpointType"] == "Gateway"
    )
    assert {each["Ref"].partition("Subnet")[0] for each in gateway["RouteTableIds"]} == {"Vpc10x64x0x0x20functions"}
    assert len(gateway["RouteTableIds"]) == 2


def test_what_crosses_the_network_is_logged_for_the_days_of_the_environment(synthesise: Synthesiser) -> None:
    network = managed(synthesise).stack("network")
    assert network.properties("AWS::EC2::FlowLog")["TrafficType"] == "ALL"
    assert network.properties("AWS::Logs::LogGroup")["RetentionInDays"] == 365


def test_every_function_is_in_the_isolated_subnets(synthesise: Synthesiser) -> None:
    service = managed(synthesise)
    for stack in (service, service.stack("knowledge")):
        for function in stack.resources("AWS::Lambda::Function").values():
            placed = function["Properties"]["VpcConfig"]
            assert len(placed["SubnetIds"]) == 2
            assert all("functions" in str(subnet) for subnet in placed["SubnetIds"])
            assert len(placed["SecurityGroupIds"]) == 1


def test_what_connects_a_function_to_its_network_is_denied_to_its_code(synthesise: Synthesiser) -> None:
    service = managed(synthesise)
    for stack in (service, service.stack("knowledge")):
        ((function, _),) = stack.resources("AWS::Lambda::Function").items()
        statements = [
            statement
            for policy in stack.resources("AWS::IAM::Policy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        (denied,) = [statement for statement in statements if statement["Effect"] == "Deny"]
        (allowed,) = [each for each in statements if each["Effect"] == "Allow" and each["Resource"] == "*"]
        assert set(denied["Action"]) <= set(allowed["Action"])
        assert denied["Condition"] == {"ArnEquals": {"lambda:SourceFunctionArn": [{"Fn::GetAtt": [function, "Arn"]}]}}


def test_an_address_beside_the_secret_of_rds_has_no_user_and_no_password(synthesise: Synthesiser) -> None:
    own, address = environment("prod", "managed"), "postgresql://db.internal:5432/cragside"
    service = synthesise(checked(own.changed(servers={**own.servers.model_dump(), "postgres_address": address})))
    for stack in (service, service.stack("knowledge")):
        variables = stack.properties("AWS::Lambda::Function")["Environment"]["Variables"]
        assert (variables["POSTGRES_URI"], "POSTGRES_URI_SECRET" in variables) == (address, True)


def test_functions_log_in_with_tokens_as_the_named_user_alone(synthesise: Synthesiser) -> None:
    user = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:db-ABCDEFGH/cragside"
    own = environment("prod", "managed")
    service = synthesise(own.changed(servers={**own.servers.model_dump(), "postgres_user_arn": user}))
    for stack in (service, service.stack("knowledge")):
        connecting = [
            statement["Resource"]
            for policy in stack.resources("AWS::IAM::Policy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if "rds-db:connect" in str(statement["Action"])
        ]
        assert connecting == [user]


def test_functions_are_told_where_the_servers_are_and_may_read_their_secrets(synthesise: Synthesiser) -> None:
    uri = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:cragside/postgres-AbC123"
    service = managed(synthesise)
    for stack in (service, service.stack("knowledge")):
        variables = stack.properties("AWS::Lambda::Function")["Environment"]["Variables"]
        assert variables["OLLAMA_BASE_URL"] == "http://ollama.internal:11434"
        assert variables["SEARXNG_HOST"] == "http://searxng.internal:8080"
        assert variables["POSTGRES_URI_SECRET"] == uri
        reading = [
            statement["Resource"]
            for policy in stack.resources("AWS::IAM::Policy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if "secretsmanager:GetSecretValue" in str(statement["Action"])
        ]
        assert uri in str(reading)
        assert "*" not in str(reading)


def test_an_existing_network_is_used_and_not_changed(synthesise: Synthesiser) -> None:
    imported = environment("prod", "managed").changed(
        network={
            "vpc_id": "vpc-0123456789abcdef0",
            "cidr": "10.1.0.0/16",
            "zones": ("eu-central-1a", "eu-central-1b"),
            "subnet_ids": ("subnet-1", "subnet-2"),
            "security_group_id": "sg-0123456789abcdef0",
        }
    )
    service = synthesise(checked(imported))
    placed = service.properties("AWS::Lambda::Function")["VpcConfig"]
    assert placed == {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-0123456789abcdef0"]}
    assert "Resources" not in service.stack("network").template


def test_a_collector_of_traces_is_one_more_server(synthesise: Synthesiser) -> None:
    traced = environment("prod", "managed").changed(
        settings={"RAG_TRACES": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.internal:4318"}
    )
    _, functions = group(synthesise(checked(traced)).stack("network"), "cragside: functions")
    assert ("10.64.0.0/20", 4318) in {
        (rule.get("CidrIp"), rule["FromPort"]) for rule in functions["SecurityGroupEgress"]
    }


@pytest.fixture(scope="module")
def sam() -> list[str]:
    """Return the command that runs a program on SAM's own Python."""
    uv = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
    return [uv, "run", "--quiet", "--no-project", "--isolated", "--python", sys.executable, "--with", SAM, "python"]


def test_sam_takes_every_template(synthesise: Synthesiser, sam: list[str]) -> None:
    every = [path for pair in PAIRS for path in templates(synthesise(environment(*pair)))]
    script = Path(__file__).with_name("sam_validation.py")
    environ = {"SAM_CLI_TELEMETRY": "0", "AWS_EC2_METADATA_DISABLED": "true"}
    # It also prints words of its own on metrics that it does not send.
    assert tools.run([*sam, str(script), *map(str, every)], env=environ).endswith(f"{len(every)} are valid\n")


def test_without_a_container_engine_nothing_is_built_for_sam(sam: list[str], tmp_path: Path) -> None:
    with pytest.raises(tools.Unavailable, match=r"Do you have Docker or Finch .*DOCKER_HOST"):
        tools.run([*sam, str(ROOT / "infra/engine.py")], env={"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
