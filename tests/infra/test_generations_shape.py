"""The shape whose knowledge is written without a database: a bucket of generations, a queue, and two functions."""

import json
from typing import Any

import pytest
from synthesis import Synthesised, Synthesiser, problems_of

from infra.checks import checked
from infra.config import named

pytestmark = pytest.mark.infra

KEY = "arn:aws:kms:eu-central-1:123456789012:key/0f1e2d3c-0000-4000-8000-000000000000"
FIELDS = {"generations": 7, "index_tmp_mb": 4096}


@pytest.fixture(scope="module")
def service(synthesise: Synthesiser) -> Synthesised:
    return synthesise(checked(named("dev").changed(knowledge=FIELDS)))


@pytest.fixture(scope="module")
def stack(service: Synthesised) -> Synthesised:
    return service.stack("knowledge")


def variables(stack: Synthesised) -> dict[str, Any]:
    return dict(stack.properties("AWS::Lambda::Function")["Environment"]["Variables"])


def allowed(stack: Synthesised, resource: str) -> set[str]:
    """The actions of S3 on resources that end so."""
    found: set[str] = set()
    for policy in stack.resources("AWS::IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            if any(ending(each) == resource for each in resources):
                actions = statement["Action"]
                found |= {actions} if isinstance(actions, str) else set(actions)
    return found


def ending(resource: Any) -> str:
    last = resource["Fn::Join"][1][-1] if isinstance(resource, dict) and "Fn::Join" in resource else resource
    return last if isinstance(last, str) else json.dumps(last)


def test_both_functions_have_one_bucket_and_one_queue_and_no_database(service: Synthesised, stack: Synthesised) -> None:
    for one in (service, stack):
        said = variables(one)
        assert said["RAG_GENERATIONS"]["Fn::Join"][1][-1] == "/knowledge"
        assert "RAG_QUEUE_URL" in said
        assert not {"RAG_HOME", "POSTGRES_URI_SECRET", "RAG_POSTGRES_CONNECTIONS"} & said.keys()
        assert "VpcConfig" not in one.properties("AWS::Lambda::Function")
        layers = {each["Properties"]["Description"] for each in one.resources("AWS::Lambda::LayerVersion").values()}
        assert "cragside: Drivers" not in layers
        assert ("cragside: Parsers" in layers) is (one is service)
    assert "RAG_UPLOADS" in variables(service)


def test_the_function_that_writes_has_room_and_no_snapshot(stack: Synthesised) -> None:
    function = stack.properties("AWS::Lambda::Function")
    assert function["EphemeralStorage"] == {"Size": 4096}
    assert "SnapStart" not in function


def test_the_bucket_is_versioned_and_no_rule_ends_a_store(stack: Synthesised) -> None:
    (bucket,) = [
        each for each in stack.resources("AWS::S3::Bucket").values() if "VersioningConfiguration" in each["Properties"]
    ]
    said = bucket["Properties"]
    assert said["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(said["PublicAccessBlockConfiguration"].values()) == {True}
    rules = {each["Prefix"]: each for each in said["LifecycleConfiguration"]["Rules"]}
    assert set(rules) == {"knowledge/ws/", "knowledge/in/", "knowledge/refused/"}
    assert rules["knowledge/ws/"]["NoncurrentVersionExpiration"] == {"NewerNoncurrentVersions": 7, "NoncurrentDays": 30}
    assert [prefix for prefix, rule in rules.items() if "ExpirationInDays" in rule] == ["knowledge/refused/"]
    assert rules["knowledge/in/"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}


def test_the_function_of_requests_writes_the_inbox_alone(service: Synthesised) -> None:
    assert allowed(service, "/knowledge/ws/*") == {"s3:GetObject"}
    assert allowed(service, "/knowledge/in/*") == {"s3:GetObject", "s3:PutObject"}
    assert allowed(service, "/knowledge/refused/*") == {"s3:GetObject"}


def test_the_function_that_writes_deletes_no_store(stack: Synthesised) -> None:
    assert allowed(stack, "/knowledge/ws/*") == {"s3:GetObject", "s3:PutObject"}
    for prefix in ("in", "refused"):
        assert allowed(stack, f"/knowledge/{prefix}/*") == {"s3:DeleteObject", "s3:GetObject", "s3:PutObject"}
    versions = json.dumps(stack.resources("AWS::IAM::Policy"))
    assert 'Version"' not in versions.replace('"Version": "2012-10-17"', "")
    assert "s3:DeleteObjectVersion" not in versions


def test_a_key_of_ones_own_encrypts_the_stores(synthesise: Synthesiser) -> None:
    keyed = synthesise(named("dev").changed(knowledge=FIELDS, operations={"kms_key_arn": KEY})).stack("knowledge")
    for bucket in keyed.resources("AWS::S3::Bucket").values():
        assert KEY in str(bucket["Properties"]["BucketEncryption"])


def test_stores_outlive_the_stack_where_data_is_kept(synthesise: Synthesiser) -> None:
    for name, wanted in (("dev", "Delete"), ("prod", "Retain")):
        stack = synthesise(named(name).changed(knowledge=FIELDS)).stack("knowledge")
        policies = {
            key.partition("Bucket")[0]: each["DeletionPolicy"]
            for key, each in stack.resources("AWS::S3::Bucket").items()
        }
        assert policies == {"Uploads": "Delete", "Stores": wanted}


def test_cfn_lint_reports_nothing(stack: Synthesised) -> None:
    assert problems_of(stack.file) == []
