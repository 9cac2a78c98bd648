from typing import Any

import pytest
from pydantic import ValidationError

from cragside.settings import Settings, variable_of
from infra.checks import checked
from infra.config import Environment, NotDeployable, named
from infra.settings import OTEL_USED, REFUSED

NEW = {"s3_prefix_list_id": "pl-6ea54007"}
IMPORTED = {
    "vpc_id": "vpc-0123456789abcdef0",
    "cidr": "10.1.0.0/16",
    "zones": ("eu-central-1a", "eu-central-1b"),
    "subnet_ids": ("subnet-1", "subnet-2"),
    "security_group_id": "sg-0123456789abcdef0",
}
UUID = "01234567-89ab-cdef-0123-456789abcdef"
WEB_ACL = f"arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/shared/{UUID}"
ADDRESS = "postgresql://db.internal:5432/cragside?sslmode=verify-full"
USER = "arn:aws:rds-db:eu-central-1:123456789012:dbuser:db-ABCDEFGH/cragside"
CERTIFICATE = f"arn:aws:acm:us-east-1:123456789012:certificate/{UUID}"
BUCKET = {"uri": "s3://some-bucket/demo", "sha256": "ab" * 32}


def secret(name: str, region: str = "eu-central-1") -> str:
    return f"arn:aws:secretsmanager:{region}:123456789012:secret:{name}-AbC123"


POSTGRES = {"postgres_uri_secret_arn": secret("postgres")}
NEO4J = {"neo4j_uri": "neo4j://graph.internal:7687", "neo4j_password_secret_arn": secret("neo4j")}
WRITABLE: dict[str, Any] = {
    "knowledge": {"index_concurrency": 2, "pool": 2},
    "network": NEW,
    "servers": POSTGRES,
    "reserved_concurrency": 20,
}


@pytest.fixture(autouse=True)
def _no_command_line_of_the_cdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDK_DEFAULT_REGION", raising=False)


def changed(**fields: Any) -> Environment:
    return named("dev").changed(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"servers": {"ollama_url": "https://ollama.example"}},
        {"servers": {"ollama_url": "http://10.64.1.3:11434"}, "network": {}},
        {"servers": {"ollama_url": "http://10.1.2.3:11434", "cidrs": ["10.1.0.0/16"]}, "network": {}},
        {"servers": {"ollama_url": "http://ollama.example", "cidrs": ["10.1.0.0/16"]}, "network": {}},
        {"servers": {"ollama_url": "http://one.elb.eu-central-1.amazonaws.com"}, "network": {}},
        WRITABLE,
        {**WRITABLE, "servers": {**POSTGRES, **NEO4J}, "network": IMPORTED, "region": "eu-central-1"},
        {**WRITABLE, "reserved_concurrency": 46},
        {"knowledge": BUCKET},
        {"knowledge": {"generations": 5}},
        {"knowledge": BUCKET, "network": NEW},
        {"settings": {"RAG_THRESHOLD": "0.5", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example:4318"}},
        {"settings": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://10.64.2.3:4318/v1/traces"}, "network": {}},
        {"settings": {"RAG_TRACES": "true", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://otlp.example/v1/traces"}},
        {"settings": {"RAG_TRACES": "false"}},
        {**WRITABLE, "knowledge": {"fetch_pages": True}, "network": IMPORTED},
        {"operations": {"tags": {"Kosten Stelle": "a/b_c.d:e=f+g-h@i 7", "Zweck": "für alle"}}},
        {**WRITABLE, "servers": {**POSTGRES, **NEO4J}, "settings": {"RAG_GRAPH_STORAGE": "Neo4JStorage"}},
        {"reserved_concurrency": 900},
        {"settings": {"POWERTOOLS_LOG_LEVEL": "DEBUG", "NEO4J_DATABASE": "graph"}},
        {"token_parameter": "/cragside/dev/token"},
        {"api": {"kind": "rest"}, "operations": {"authorisation": "iam"}},
        {"api": {"kind": "rest", "web_acl_arn": WEB_ACL}},
        {"api": {"kind": "private", "vpc_endpoint_ids": ["vpce-0123456789abcdef0"]}},
        {"knowledge": {**BUCKET, "size_mb": 900}, "tmp_mb": 1024},
        {**WRITABLE, "servers": {**POSTGRES, "postgres_user_arn": USER}},
        {**WRITABLE, "servers": {**POSTGRES, "postgres_address": ADDRESS}},
        {"settings": {"RAG_POSTGRES_SECONDS": "5"}},
    ],
)
def test_what_can_be_deployed_passes(fields: dict[str, Any]) -> None:
    assert checked(changed(**fields))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"servers": POSTGRES}, r"PostgreSQL is reached in a network"),
        ({"servers": NEO4J, "network": {}}, r"servers\.neo4j_uri: documents are in PostgreSQL"),
        ({"servers": {"qdrant_url": "https://q.example"}}, r"servers\.qdrant_url: documents are in PostgreSQL"),
        (
            {**WRITABLE, "servers": {**POSTGRES, "neo4j_uri": NEO4J["neo4j_uri"]}},
            r"set servers\.neo4j_password_secret_arn too",
        ),
        ({"servers": {"ollama_url": "http://10.1.2.3:11434"}}, r"servers\.ollama_url: .* private address: set network"),
        ({"servers": {"searxng_url": "http://searxng:8080"}}, r"servers\.searxng_url: .* private address"),
        ({"servers": {"ollama_url": "http://8.8.8.8:11434"}, "network": {}}, r"no way out to this public address"),
        (
            {"servers": {"ollama_url": "http://10.1.2.3:11434"}, "network": {}},
            r"servers\.ollama_url: functions may reach 10\.64\.0\.0/20 alone: say in servers\.cidrs where it is",
        ),
        ({"servers": {"searxng_url": "https://s.example"}, "network": {}}, r"servers\.searxng_url: .* public name"),
        ({**WRITABLE, "knowledge": {"fetch_pages": True}}, r"knowledge\.fetch_pages: .* no way out to pages"),
        (
            {"settings": {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example"}, "network": {}},
            r"settings: OTEL_EXPORTER_OTLP_ENDPOINT: the new network has no way out to this public name",
        ),
        (
            {**WRITABLE, "settings": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://8.8.8.8:4318"}},
            r"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: the new network has no way out to this public address",
        ),
        (
            {"settings": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://10.1.2.3:4318"}},
            r"OTEL_EXPORTER_OTLP_ENDPOINT: .* private address: set network",
        ),
        ({**WRITABLE, "network": {}}, r"describe-managed-prefix-lists"),
        ({"knowledge": BUCKET, "network": {}}, r"describe-managed-prefix-lists"),
        ({"network": IMPORTED, "region": "eu-west-1"}, r"network\.zones: .* another region than eu-west-1"),
        ({"servers": POSTGRES, "network": {}}, r"it is baked, but servers have PostgreSQL"),
        ({**WRITABLE, "servers": {}}, r"Writable needs PostgreSQL"),
        ({**WRITABLE, "knowledge": {"generations": 5}}, r"it is in a bucket, but servers have PostgreSQL"),
        ({"knowledge": {"generations": 5, "visibility_seconds": 600}}, r"600 is less than 6 times"),
        (
            {**WRITABLE, "knowledge": {"index_timeout_seconds": 900, "visibility_seconds": 5399}},
            r"5399 is less than 6 times .*: set 5400 at least",
        ),
        ({"reserved_concurrency": 901}, r"leaves less than 100 of the account's 1000.*at most 900"),
        ({"reserved_concurrency": 1, "account_concurrency": 10}, r"at most 0"),
        ({**WRITABLE, "reserved_concurrency": None}, r"any number of connections"),
        (
            {**WRITABLE, "reserved_concurrency": 47},
            r"\(47 reserved \+ 2 index functions \+ 2 for sweep and migration\) x 2 .* = 102, more than 100",
        ),
        (
            {
                **WRITABLE,
                "servers": {**POSTGRES, "postgres_connections": 9000},
                "knowledge": {"index_concurrency": 900},
            },
            r"922 functions at once are more than the 900 that the account's 1000 leave to them",
        ),
        (
            {"settings": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:hunter2@10.1.2.3:4318"}},
            r"OTEL_EXPORTER_OTLP_ENDPOINT may hold a password",
        ),
        (
            {"operations": {"authorisation": "iam"}, "token_secret_arn": secret("token")},
            r"token_secret_arn: .*leave it out",
        ),
        ({"operations": {"tags": {"environment": "x"}}}, r"operations\.tags: environment is taken"),
        ({"operations": {"tags": {"Team": "x", "team": "y"}}}, r"operations\.tags: team is taken"),
        ({"operations": {"tags": {"AWS:x": "y"}}}, r"operations\.tags: AWS:x is taken"),
        ({"operations": {"tags": {"team;x": "y"}}}, r"operations\.tags: 'team;x' is no text for a tag: 1 to 128"),
        ({"operations": {"tags": {"team": "<y>"}}}, r"operations\.tags: '<y>' is no text for a tag: 1 to 256"),
        ({"operations": {"tags": {"team": ""}}}, r"operations\.tags: '' is no text for a tag"),
        ({"operations": {"tags": {"a" * 129: "y"}}}, r"operations\.tags: 'a+' is no text for a tag"),
        ({**WRITABLE, "region": "eu-west-1"}, r"servers\.postgres_uri_secret_arn: it is in another account or region"),
        (
            {
                "region": "eu-west-1",
                "operations": {"kms_key_arn": f"arn:aws:kms:eu-central-1:123456789012:key/{UUID}"},
            },
            r"operations\.kms_key_arn: it is in another .*: 123456789012 and eu-central-1",
        ),
        (
            {"region": "eu-west-1", "operations": {"domain": {"name": "a.example", "certificate_arn": CERTIFICATE}}},
            r"operations\.domain\.certificate_arn: it is in another .*: 123456789012 and us-east-1",
        ),
        (
            {"token_secret_arn": secret("token"), "region": "eu-west-1"},
            r"token_secret_arn: it is in another account or region",
        ),
        (
            {**WRITABLE, "operations": {"domain": {"name": "a.example", "certificate_arn": CERTIFICATE}}},
            r"operations\.domain\.certificate_arn: it is in another .* us-east-1",
        ),
        (
            {"settings": {"OLLAMA_BASE_URL": "http://x"}},
            r"OLLAMA_BASE_URL cannot .*: it is set by servers\.ollama_url",
        ),
        ({"settings": {"RAG_API_TOKEN": "x"}}, r"a template .* would show it; name its secret in token_secret_arn"),
        ({"settings": {"RAG_TRESHOLD": "0.5"}}, r"Did you mean RAG_THRESHOLD"),
        ({"settings": {"RAG_THRESHOLD": "2"}}, r"settings: RAG_THRESHOLD: "),
        ({"settings": {"PATH": "/"}}, r"PATH is not a setting of cragside"),
        (
            {"settings": {"OTEL_SERVICE_NAM": "x"}},
            r"OTEL_SERVICE_NAM is not a variable .* functions use\. Did you mean OTEL_SERVICE_NAME\?",
        ),
        (
            {"settings": {"RAG_TRACES": "on"}},
            r"RAG_TRACES sends to the function itself: say in OTEL_EXPORTER_OTLP_ENDP",
        ),
        ({"settings": {"OTEL_LOGS_EXPORTER": "otlp"}}, r"OTEL_LOGS_EXPORTER is not a variable of OpenTelemetry"),
        ({"settings": {"OTEL_EXPORTER_OTLP_ENDPOINT": "10.1.2.3:4318"}}, r"is not an address such as http"),
        ({"settings": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:otlp"}}, r"is not an address such as http"),
        ({"settings": {"OTEL_EXPORTER_OTLP_HEADERS": "key=x"}}, r"which a template would show"),
        ({"settings": {"RAG_GRAPH_STORAGE": "Neo4JStorage"}}, r"which needs NEO4J_URI"),
        ({"settings": {"RAG_CHAT_MODEL": "x" * 3100}}, r"Lambda takes 4 KB"),
        ({"settings": {"POWERTOOLS_LOG_LEVEL": "loud"}}, r"POWERTOOLS_LOG_LEVEL is not DEBUG, INFO"),
        ({"settings": {"RAG_LOG_LEVEL": "debug"}}, r"set POWERTOOLS_LOG_LEVEL"),
        ({"servers": {"postgres_address": ADDRESS}}, r"servers\.postgres_address: documents are in PostgreSQL"),
        ({"servers": {"postgres_user_arn": USER}}, r"servers\.postgres_user_arn: documents are in PostgreSQL"),
        ({"knowledge": {**BUCKET, "size_mb": 500}}, r"tmp_mb: 512 has no room for a store of 500 MB"),
        ({"tmp_mb": 1024, "snap_start": True}, r"tmp_mb: with SnapStart Lambda gives 512 MB"),
        ({"api": {"web_acl_arn": WEB_ACL}}, r"api\.web_acl_arn: AWS WAF does not take HTTP APIs"),
        ({"api": {"kind": "private"}}, r"api\.vpc_endpoint_ids: name the endpoints that reach a private API"),
        ({"api": {"vpc_endpoint_ids": ["vpce-0123456789abcdef0"]}}, r"api\.vpc_endpoint_ids: .* none for another one"),
        (
            {
                "api": {"kind": "rest"},
                "operations": {"authorisation": {"issuer": "https://login.example", "audience": ["x"]}},
            },
            r"operations\.authorisation: REST APIs check no JWT",
        ),
        (
            {
                "api": {"kind": "private", "vpc_endpoint_ids": ["vpce-0123456789abcdef0"]},
                "operations": {"domain": {"name": "a.example", "certificate_arn": CERTIFICATE}},
            },
            r"operations\.domain: a private API answers under the name of its endpoint",
        ),
        (
            {"token_secret_arn": secret("token"), "token_parameter": "/token"},
            r"token_parameter: .*leave one of them out",
        ),
        ({"operations": {"authorisation": "iam"}, "token_parameter": "/token"}, r"token_parameter: .*leave it out"),
        (
            {"observability": "none", "operations": {"alarms": {"email": "a@b.example"}}},
            r'observability: "none" has no alarm',
        ),
        ({"observability": "none", "operations": {"monthly_budget_usd": 5}}, r'observability: "none" has no alarm'),
    ],
)
def test_what_would_fail_is_refused_with_its_reason(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotDeployable, match=reason):
        checked(changed(**fields))


def test_every_reason_has_a_line() -> None:
    with pytest.raises(NotDeployable) as refused:
        checked(changed(servers=NEO4J, operations={"tags": {"application": "x"}}))
    assert [line.partition(":")[0] for line in str(refused.value).splitlines()] == [
        "servers.neo4j_uri",
        "servers.neo4j_uri",
        "operations.tags",
    ]


def test_the_region_of_the_cdks_command_line_holds_where_the_environment_says_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = changed(operations={"kms_key_arn": f"arn:aws:kms:eu-central-1:123456789012:key/{UUID}"})
    assert checked(environment) is environment
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-central-1")
    assert checked(environment) is environment
    monkeypatch.setenv("CDK_DEFAULT_REGION", "us-east-1")
    with pytest.raises(NotDeployable, match=r"operations\.kms_key_arn: it is in another account or region"):
        checked(environment)


def test_the_variables_of_opentelemetry_are_those_of_the_sdk() -> None:
    from opentelemetry.sdk import environment_variables

    assert set(vars(environment_variables)) >= OTEL_USED


def test_each_refused_setting_is_one_and_has_a_reason() -> None:
    known = {variable_of(name) for name in Settings.model_fields}
    assert known >= REFUSED.keys()
    assert all(REFUSED.values())


def test_a_setting_that_holds_a_secret_is_refused() -> None:
    """A template would show it."""
    secret_settings = {
        variable_of(name) for name, field in Settings.model_fields.items() if "Secret" in str(field.annotation)
    }
    assert len(secret_settings) > 5
    named_secrets = {name for name in secret_settings if not name.endswith("_SECRET")}
    assert REFUSED.keys() >= named_secrets


@pytest.mark.parametrize(
    "fields",
    [
        {"network": {"cidr": "10.64.0.0/28"}},
        {"network": {"cidr": "8.8.0.0/16"}},
        {"network": {"cidr": "10.64.0.1/20"}},
        {"network": {**IMPORTED, "subnet_ids": ("subnet-1", "subnet-2", "subnet-3")}},
        {"servers": {"ollama_url": "http://user:password@host"}},
        {"network": {**IMPORTED, "zones": ("eu-central-1a", "eu-central-1a")}},
        {"network": {**IMPORTED, "subnet_ids": ("subnet-1", "subnet-1")}},
        {"network": {**IMPORTED, "cidr": "10.1.0.0"}},
        {"servers": {"cidrs": ("10.1.0.1/16",)}},
        {"servers": {"cidrs": ("10.1.0.999/32",)}},
        {"servers": {"ollama_url": "http://host:port"}},
        {"servers": {"ollama_url": "http://host/path"}},
        {"servers": {"postgres_uri_secret_arn": "postgresql://user:password@host/db"}},
        {"servers": {"postgres_address": "postgresql://user:password@host/db"}},
        {"operations": {"alarms": {"email": "a@b.example", "topic_arn": "arn:aws:sns:eu-west-1:123456789012:x"}}},
        {"operations": {"authorisation": {"issuer": "http://insecure.example", "audience": ("x",)}}},
    ],
)
def test_a_value_of_the_wrong_form_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        changed(**fields)
