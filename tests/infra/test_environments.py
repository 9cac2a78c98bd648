from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from infra.artifacts import MissingArtifact, artifacts_of
from infra.choice import chosen, knowledge_of, main
from infra.config import (
    NAMES,
    Environment,
    Generations,
    KnowledgeBucket,
    KnowledgeLayer,
    NotDeployable,
    Throttle,
    Writable,
    named,
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
def test_the_error_for_an_unknown_environment_lists_the_three(name: str | None) -> None:
    with pytest.raises(NotDeployable, match=r"dev, staging or prod: -c env=dev"):
        named(name)


def test_only_prod_keeps_its_data() -> None:
    assert [named(name).keep_data for name in NAMES] == [False, False, True]


def test_an_environment_is_frozen() -> None:
    with pytest.raises(ValidationError):
        named("dev").memory_mb = 1024  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "Test"},
        {"name": "pr_1"},
        {"name": "pr-"},
        {"name": "a" * 21},
        {"bootstrap": {"qualifier": "Team-A"}},
        {"token_parameter": "cragside/token"},
        {"api": {"kind": "alb"}},
        {"observability": "most"},
        {"tmp_mb": 511},
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
        {"python": "3.11"},
        {"snap_start": True, "python": "3.11"},
        {"knowledge": "nothing"},
        {"knowledge": {"uri": "s3://bucket/prefix", "sha256": "short"}},
        {"knowledge": {"uri": "s3://bucket", "sha256": SHA256}},
        {"knowledge": {"uri": "s3://bucket/*", "sha256": SHA256}},
        {"knowledge": {"uri": "s3://bucket/prefix/", "sha256": SHA256}},
        {"token_secret_arn": "cragside/token"},
        {"memory": 1024},
    ],
)
def test_an_invalid_environment_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        environment(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"account": "123456789012", "region": "us-gov-west-1"},
        {"name": "pr-123"},
        {"bootstrap": {"qualifier": "teama", "permissions_boundary": "Bounds"}},
        {"timeout_seconds": 28},
        {"python": "3.11", "emulated": True},
        {"snap_start": True, "python": "3.13", "architecture": "arm64"},
        {"token_secret_arn": SECRET, "region": "eu-central-1", "account": "123456789012"},
        {"knowledge": {"uri": "s3://bucket/deep/prefix", "sha256": SHA256}},
        {"knowledge": {"path": "../elsewhere"}},
        {"knowledge": "none"},
    ],
)
def test_a_valid_environment_is_accepted(fields: dict[str, Any]) -> None:
    assert environment(**fields)


def test_a_changed_environment_is_checked_as_a_whole() -> None:
    assert named("prod").changed(python="3.13").python == "3.13"
    with pytest.raises(ValidationError, match=r"choose Python 3\.12 or 3\.13"):
        named("prod").changed(python="3.11")


def test_knowledge_is_nothing_a_folder_or_a_bucket_with_a_hash() -> None:
    assert knowledge_of("none") == "none"
    assert knowledge_of("generations") == Generations(generations=10)
    assert knowledge_of("build/knowledge/demo") == KnowledgeLayer(path="build/knowledge/demo")
    bucket = KnowledgeBucket(uri="s3://some-bucket/bases/demo", sha256=SHA256)
    assert knowledge_of(f"s3://some-bucket/bases/demo#{SHA256}") == bucket


def test_a_bucket_without_a_hash_is_refused() -> None:
    with pytest.raises(ValidationError, match="sha256"):
        knowledge_of("s3://some-bucket/bases/demo")


def test_a_missing_artifact_is_named_with_what_makes_it(tmp_path: Any) -> None:
    arm64 = named("dev").changed(architecture="arm64", python="3.13")
    found = artifacts_of(arm64, tmp_path)
    with pytest.raises(MissingArtifact, match=r"functions.enrich is not there"):
        found.checked(arm64)
    found.function.mkdir(parents=True)
    with pytest.raises(MissingArtifact, match=r"core-3\.13-arm64.python is not.*`make layers ARCH=arm64 PYTHON"):
        found.checked(arm64)
    for layer in found.layers.values():
        (layer / "python").mkdir(parents=True)
    with pytest.raises(MissingArtifact, match=r"baked\.json is not there.*cragside bake"):
        found.checked(arm64)
    assert found.knowledge is not None
    found.knowledge.mkdir(parents=True)
    (found.knowledge / "baked.json").touch()
    assert found.checked(arm64) is found


def test_the_artifacts_are_those_of_the_runtime_and_the_processor() -> None:
    layers = artifacts_of(named("dev").changed(python="3.13", architecture="arm64")).layers
    assert [folder.name for folder in layers.values()] == ["core-3.13-arm64", "lightrag-3.13-arm64"]


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_staging_and_production_require_a_knowledge_setting(name: str) -> None:
    with pytest.raises(
        NotDeployable,
        match=rf"{name} names no knowledge: -c knowledge=FOLDER, s3://.*, generations, writable or none, ",
    ):
        chosen({"env": name})
    assert chosen({"env": name, "knowledge": "none"}).knowledge == "none"
    assert chosen({"env": name, "knowledge": "build/store"}).knowledge == KnowledgeLayer(path="build/store")


def test_dev_has_knowledge_of_its_own() -> None:
    assert chosen({"env": "dev"}) == named("dev")


def test_every_reason_why_a_value_does_not_fit_is_given() -> None:
    with pytest.raises(NotDeployable) as refused:
        chosen({"env": "dev", "python": "2.7", "account": "1"})
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == ["account", "python"]


def test_python_3_11_is_accepted_only_for_emulators() -> None:
    with pytest.raises(NotDeployable, match=r"glibc 2\.26.*choose Python 3\.12 or 3\.13"):
        chosen({"env": "dev", "python": "3.11"})
    assert chosen({"env": "dev", "python": "3.11", "emulated": "true"}).python == "3.11"


def test_the_layers_are_built_for_what_is_deployed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "env=prod", "-c", "python=3.13", "--context=architecture=arm64", "-c", "knowledge=none"]) == 0
    assert capsys.readouterr().out == "--python 3.13 --arch arm64\n"


def test_options_of_the_cdks_command_line_are_left_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "env=dev", "--require-approval", "never", "-c", "python=3.13"]) == 0
    assert capsys.readouterr().out == "--python 3.13 --arch x86_64\n"


@pytest.mark.parametrize("said", [["-c", "env=prod"], ["-c", "env=dev", "-c", "python=3.11"], []])
def test_nothing_is_built_for_what_cannot_be_deployed(said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(said) == 2
    assert not capsys.readouterr().out


def test_a_folder_without_a_store_is_refused_before_anything_is_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "env=staging", "-c", "knowledge=nosuch"]) == 2
    assert "`cragside bake PATH... --out " in capsys.readouterr().err
    assert main(["-c", "env=staging", "-c", "knowledge=build/knowledge/demo"]) == 0


def test_a_context_without_a_value_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["-c", "env"])
    assert "'env' is not KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["knowledge", "file", "region"])
def test_a_context_with_an_empty_value_is_refused(key: str) -> None:
    with pytest.raises(NotDeployable, match=rf"^{key}: it has no value: say -c {key}=VALUE, or leave it out$"):
        chosen({"env": "dev", key: ""})


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("s3://some-bucket/demo", "knowledge.sha256: it is missing"),
        (
            "s3://some-bucket/demo#ab",
            "knowledge.sha256: 'ab' is not a hash of 64 digits from 0 to f",
        ),
    ],
)
def test_what_is_wrong_with_a_bucket_is_said_of_the_knowledge(said: str, reason: str) -> None:
    with pytest.raises(NotDeployable) as refused:
        chosen({"env": "dev", "knowledge": said})
    assert str(refused.value) == reason


def test_a_file_changes_any_field_and_the_other_keys_go_before_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'memory_mb = 2048\npython = "3.12"\nknowledge = "build/mine"\n[throttle]\nrequests_per_second = 7\nburst = 9\n'
    )
    changed = chosen({"env": "prod", "file": str(file), "python": "3.13"})
    assert (changed.memory_mb, changed.python, changed.throttle.burst) == (2048, "3.13", 9)
    assert changed.knowledge == KnowledgeLayer(path="build/mine")
    assert chosen({"env": "prod", "file": str(file), "knowledge": "none"}).knowledge == "none"


def refusal_of(folder: Path, text: str | None) -> str:
    """Return why a file with this text cannot be deployed; None stands for no file."""
    file = folder / "mine.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(NotDeployable) as refused:
        chosen({"env": "dev", "file": str(file)})
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('network.cidr = "8.8.0.0/16"', "network: cidr: 8.8.0.0/16 is not a private range between /16 and /24"),
        ('network.s3_prefix_lst_id = "pl-6ea54007"', "network.s3_prefix_lst_id: there is no such field"),
        (
            'network = { vpc_id = "vpc-1", cidr = "10.1.0.0/16", zones = ["a", "b"], subnet_ids = ["1", "2"], '
            'security_group_id = "sg-0123456789abcdef0" }',
            "network.vpc_id: 'vpc-1' is not the id of a VPC, such as vpc-0123456789abcdef0",
        ),
        ('network = "new"', "network: 'new' is not a table of NewNetwork or a table of ImportedNetwork"),
        ('servers.ollama_ulr = "http://x"', "servers.ollama_ulr: there is no such field"),
        ("servers.postgres_port = 0", "servers.postgres_port: 0 is not at least 1"),
        ("knowledge.pool = 1", "knowledge.pool: 1 is not at least 2"),
        ("knowledge.index_concurency = 3", "knowledge.index_concurency: there is no such field"),
        ('knowledge.uri = "s3://some-bucket/demo"', "knowledge.sha256: it is missing"),
        (
            "knowledge = 7",
            "knowledge: 7 is not 'none' or a table of Writable or a table of KnowledgeLayer or a table of "
            "KnowledgeBucket or a table of Generations",
        ),
        (
            'operations.authorisation = "aim"',
            "operations.authorisation: 'aim' is not 'token' or 'iam' or a table of Jwt",
        ),
        ('operations.authorisation.issuer = "https://x"', "operations.authorisation.audience: it is missing"),
        ("memory = 1024", "memory: there is no such field"),
        ('knowledge = ""', "knowledge.path: '' is not a text with something in it"),
        ('memory_mb = "lots"', "memory_mb: 'lots' is not a whole number"),
        ("memory_mb = 100", "memory_mb: 100 is not at least 512"),
        ("timeout_seconds = 29", "timeout_seconds: 29 is not at most 28"),
        ("operations.alarms.p95_seconds = 0", "operations.alarms.p95_seconds: 0 is not more than 0"),
        ('python = "3.9"', "python: '3.9' is not '3.11', '3.12' or '3.13'"),
        ('keep_data = "maybe"', "keep_data: 'maybe' is not true or false"),
        ("region = 7", "region: 7 is not a text, which stands between quotes"),
        ('region = "Frankfurt"', "region: 'Frankfurt' is not a region, such as eu-central-1"),
        ("throttle = true", "throttle: true is not a table"),
        ("servers.cidrs = '10.1.0.0/16'", "servers.cidrs: '10.1.0.0/16' is not a list"),
        (
            'servers.cidrs = ["10.1.0.1/16"]',
            "servers.cidrs.0: '10.1.0.1/16' is not a range of addresses, such as 10.1.0.0/16",
        ),
        (
            'servers.ollama_url = "http://ollama:99999"',
            "servers.ollama_url: 'http://ollama:99999' is not an address with a port from 1 to 65535",
        ),
        (
            'operations.authorisation = { issuer = "https://x", audience = [] }',
            "operations.authorisation.audience: [] is not a list of at least 1",
        ),
        ("settings.RAG_TOP_K = 7", "settings.RAG_TOP_K: what is given is not a text, which stands between quotes"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(text: str, line: str, tmp_path: Path) -> None:
    assert refusal_of(tmp_path, text) == line


@pytest.mark.parametrize(
    "text",
    [
        'servers.postgres_uri_secret_arn = "hunter2"',
        'servers.neo4j_uri = "neo4j://neo4j:hunter2@host"',
        "settings.OPENAI_API_KEY = ['hunter2']",
        'token_secret_arn = "hunter2"',
        'servers.cidrs = "postgresql://hunter2@host"',
    ],
)
def test_what_may_be_a_secret_is_not_shown(text: str, tmp_path: Path) -> None:
    refusal = refusal_of(tmp_path, text)
    assert "what is given is not" in refusal
    assert "hunter2" not in refusal


@pytest.mark.parametrize("text", [None, "memory_mb = ", "memory = 1024", "name = 'prod'"])
def test_a_file_that_cannot_be_read_or_has_other_fields_is_refused(text: str | None, tmp_path: Path) -> None:
    assert refusal_of(tmp_path, text)


def test_what_cannot_be_deployed_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    assert "reserved_concurrency" in refusal_of(tmp_path, "reserved_concurrency = 1000")


def test_what_is_deployed_can_be_destroyed_whatever_it_is() -> None:
    assert chosen({"env": "prod", "destroying": "true"}).knowledge == "none"
    assert chosen({"env": "dev", "destroying": "true"}) == named("dev").changed(knowledge="none")
    assert chosen({"env": "dev", "destroying": "true", "knowledge": "writable"}).knowledge == Writable()
    with pytest.raises(NotDeployable):
        chosen({"env": "prod", "destroying": "false"})


def test_functions_larger_than_lambda_takes_are_refused(tmp_path: Path) -> None:
    built = artifacts_of(named("dev").changed(knowledge="none"), tmp_path)
    for folder in (built.function, *(layer / "python" for layer in built.layers.values())):
        folder.mkdir(parents=True)
    with (built.layers["Core"] / "python" / "large.bin").open("wb") as file:
        file.truncate(250 * 2**20)
    assert built.checked(named("dev")) is built
    (built.layers["LightRag"] / "python" / "one.bin").write_bytes(b"x")
    with pytest.raises(NotDeployable, match=r"enrich: function and layers have 250 MiB, and Lambda takes 250"):
        built.checked(named("dev"))


def test_a_new_name_takes_the_values_of_an_environment() -> None:
    staging = chosen({"env": "pr-123", "like": "staging", "knowledge": "none"})
    assert staging == named("staging").changed(name="pr-123", knowledge="none")
    assert staging.stack_names == ("cragside-pr-123-service", "cragside-pr-123-observability")
    with pytest.raises(NotDeployable, match=r"There is no environment 'pr-123'. .*-c env=pr-123 -c like=dev"):
        chosen({"env": "pr-123"})
    with pytest.raises(NotDeployable, match=r"like: prod has values of its own: leave it out"):
        chosen({"env": "prod", "like": "dev", "knowledge": "none"})
    with pytest.raises(NotDeployable, match=r"There is no environment 'nope'"):
        chosen({"env": "pr-123", "like": "nope"})
    with pytest.raises(NotDeployable, match=r"name: 'PR_1' is not a name such as dev or pr-123"):
        chosen({"env": "PR_1", "like": "dev"})


def test_the_throttle_is_within_the_reserved_concurrency() -> None:
    prod = named("prod")
    assert prod.fitting_throttle == prod.throttle
    few = prod.changed(reserved_concurrency=20).fitting_throttle
    assert (few.requests_per_second, few.burst) == (20, 20)
