"""Refusals before anything is built: against moto's CloudFormation, STS and IAM."""

import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count

from infra import preflight
from infra.config import named

EXAMPLES = Path(preflight.__file__).parent / "examples"
STACKS = ("network", "data", "knowledge", "service", "observability")
ACCOUNT, REGION = "123456789012", "us-east-1"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield boto3.Session(region_name=REGION)


@pytest.fixture
def deployed(session: boto3.Session) -> boto3.Session:
    """dev with a stack that it has no more, its pipeline, and stacks that are none of dev's."""
    for name in (*STACKS, "pipeline"):
        create(session, f"cragside-dev-{name}")
    for name in ("cragside-prod-data", "CDKToolkit"):
        create(session, name)
    return session


def create(session: boto3.Session, name: str) -> None:
    template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    session.client("cloudformation").create_stack(StackName=name, TemplateBody=template)


def context(*said: str) -> list[str]:
    return [part for each in ("env=dev", *said) for part in ("-c", each)]


@pytest.mark.parametrize("destroying", [[], ["destroying=true"]], ids=["deploy", "destroy"])
def test_without_its_file_a_deployment_is_refused(
    deployed: boto3.Session, destroying: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert preflight.main(["--stacks", *context(*destroying), "--require-approval", "never"], deployed) == 2
    said = capsys.readouterr().err
    names = "cragside-dev-data, cragside-dev-knowledge, cragside-dev-network"
    assert said.startswith(f"These deployed stacks would be left, and go on costing money: {names}. Name the file ")
    assert said.count("\n") == 1
    assert preflight.main(["--stacks", *context(f"file={EXAMPLES / 'managed.toml'}", *destroying)], deployed) == 2
    assert "costing money: cragside-dev-data. " in capsys.readouterr().err
    deployed.client("cloudformation").delete_stack(StackName="cragside-dev-data")
    assert preflight.main(["--stacks", *context(f"file={EXAMPLES / 'managed.toml'}", *destroying)], deployed) == 0


def test_stacks_are_left_if_somebody_says_so(deployed: boto3.Session) -> None:
    assert preflight.main(["--stacks", *context("leaving=true")], deployed) == 0


def test_nothing_is_left_in_an_empty_account(session: boto3.Session) -> None:
    assert preflight.main(["--stacks", *context()], session) == 0


def test_a_set_of_changes_is_no_deployment(session: boto3.Session) -> None:
    session.client("cloudformation").create_change_set(
        StackName="cragside-dev-data", ChangeSetName="one", ChangeSetType="CREATE", TemplateBody='{"Resources": {}}'
    )
    assert preflight.main(["--stacks", *context()], session) == 0


def test_what_cannot_be_deployed_is_refused_before_aws_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert preflight.main(["--stacks", "-c", "env=prod"]) == 2
    assert capsys.readouterr().err.startswith("prod names no knowledge: ")


@pytest.mark.parametrize("option", [["--stacks"], []], ids=["left", "credentials"])
def test_without_an_answer_of_aws_nothing_is_done(
    option: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    # The name that the CDK's command line reads, too: boto3 itself only knows AWS_DEFAULT_REGION.
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_REGION", REGION)
    assert preflight.main([*option, *context()]) == 2
    reason = "AWS does not say what is deployed: Unable to locate credentials"
    assert capsys.readouterr().err.startswith(f"{reason}. Set credentials and the region, ")


def test_whoever_aws_knows_may_look(session: boto3.Session) -> None:
    assert preflight.main([*context(), "--quiet"], session) == 0


def test_the_right_to_assume_the_roles_of_the_bootstrap_is_enough(deployed: boto3.Session) -> None:
    iam = deployed.client("iam")
    lookup = f"cdk-hnb659fds-lookup-role-{ACCOUNT}-{REGION}"
    iam.create_role(RoleName=lookup, AssumeRolePolicyDocument=allowed("sts:AssumeRole", "*"))
    iam.put_role_policy(RoleName=lookup, PolicyName="reads", PolicyDocument=allowed("cloudformation:DescribeStacks"))
    iam.create_user(UserName="pipeline")
    may = allowed("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/{lookup}")
    iam.put_user_policy(UserName="pipeline", PolicyName="assumes", PolicyDocument=may)
    key = iam.create_access_key(UserName="pipeline")["AccessKey"]
    pipeline = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)
    found = enforced(pipeline)
    assert [name.rpartition("-")[2] for name in found] == ["data", "knowledge", "network"]


@set_initial_no_auth_action_count(0)
def enforced(pipeline: boto3.Session) -> list[str]:
    """Resources of dev that are left, with policies in force."""
    return preflight.leftover(named("dev"), pipeline)


def allowed(action: str, resource: str = "*") -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
