from typing import Any

import pytest
from pydantic import ValidationError

from infra.artifacts import MissingArtifact, artifacts_of
from infra.environments import NAMES, named
from infra.environments.model import (
    Environment,
    KnowledgeBucket,
    KnowledgeLayer,
    Throttle,
    UnknownEnvironment,
    knowledge_of,
)

SHA256 = "ab" * 32
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:cragside/token-AbC123"


def environment(**fields: Any) -> Environment:
    return Environment(
        **{"name": "dev", "throttle": Throttle(requests_per_second=1, burst=1), "keep_data": False, **fields}
    )


def test_there_are_three_environments() -> None:
    assert NAMES == ("dev", "staging", "prod")
    assert [named(name).name for name in NAMES] == ["dev", "staging", "prod"]


@pytest.mark.parametrize("name", ["production", "", None, "DEV"])
def test_an_unknown_environment_is_told_the_three_that_there_are(name: str | None) -> None:
    with pytest.raises(UnknownEnvironment, match=r"dev, staging or prod: -c env=dev"):
        named(name)


def test_only_prod_keeps_its_data() -> None:
    assert [named(name).keep_data for name in NAMES] == [False, False, True]


def test_an_environment_is_frozen() -> None:
    with pytest.raises(ValidationError):
        named("dev").memory_mb = 1024  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "test"},
        {"account": "1234"},
        {"account": "123456789012"},  # without a region
        {"region": "Frankfurt"},
        {"memory_mb": 100},
        {"memory_mb": 10_241},
        {"timeout_seconds": 29},
        {"timeout_seconds": 0},
        {"python": "3.10"},
        {"architecture": "arm"},
        {"log_retention_days": 8},
        {"reserved_concurrency": 0},
        {"throttle": {"requests_per_second": 0, "burst": 1}},
        {"snap_start": True, "python": "3.11"},
        {"knowledge": {"path": "../elsewhere"}},
        {"knowledge": {"uri": "s3://bucket/prefix", "sha256": "short"}},
        {"knowledge": {"uri": "s3://bucket", "sha256": SHA256}},
        {"knowledge": {"uri": "s3://bucket/*", "sha256": SHA256}},
        {"knowledge": {"uri": "s3://bucket/prefix/", "sha256": SHA256}},
        {"token_secret_arn": "cragside/token"},
        {"token_secret_arn": SECRET, "region": "eu-west-1"},
        {"memory": 1024},
    ],
)
def test_what_cannot_be_deployed_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        environment(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"account": "123456789012", "region": "us-gov-west-1"},
        {"timeout_seconds": 28},
        {"snap_start": True, "python": "3.13", "architecture": "arm64"},
        {"token_secret_arn": SECRET, "region": "eu-central-1", "account": "123456789012"},
        {"knowledge": {"uri": "s3://bucket/deep/prefix", "sha256": SHA256}},
    ],
)
def test_what_can_be_deployed_is_taken(fields: dict[str, Any]) -> None:
    assert environment(**fields)


def test_a_changed_environment_is_checked_as_a_whole() -> None:
    assert named("prod").changed(python="3.13").python == "3.13"
    with pytest.raises(ValidationError, match="snap_start needs"):
        named("prod").changed(python="3.11")


def test_knowledge_is_nothing_a_folder_or_a_bucket_with_a_hash() -> None:
    assert knowledge_of("none") is None
    assert knowledge_of("build/knowledge/demo") == KnowledgeLayer(path="build/knowledge/demo")
    bucket = knowledge_of(f"s3://some-bucket/bases/demo#{SHA256}")
    assert bucket == KnowledgeBucket(uri="s3://some-bucket/bases/demo", sha256=SHA256)
    assert isinstance(bucket, KnowledgeBucket)
    assert (bucket.bucket, bucket.prefix) == ("some-bucket", "bases/demo")


def test_a_bucket_without_a_hash_is_refused() -> None:
    with pytest.raises(ValidationError, match="sha256"):
        knowledge_of("s3://some-bucket/bases/demo")


def test_a_missing_artifact_is_named_with_what_makes_it(tmp_path: Any) -> None:
    found = artifacts_of(named("dev"), tmp_path)
    with pytest.raises(MissingArtifact, match=r"functions.enrich is not there.*make artifacts ENV=dev"):
        found.checked("dev")
    for folder in (found.function, *(layer / "python" for layer in found.layers.values())):
        folder.mkdir(parents=True)
    with pytest.raises(MissingArtifact, match=r"baked\.json is not there.*cragside bake"):
        found.checked("dev")


def test_the_artifacts_are_those_of_the_runtime_and_the_processor() -> None:
    layers = artifacts_of(named("dev").changed(python="3.13", architecture="arm64")).layers
    assert [folder.name for folder in layers.values()] == ["core-3.13-arm64", "lightrag-3.13-arm64"]
