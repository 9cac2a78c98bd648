"""Smoke tests of a deployment, against a service on loopback and moto's CloudFormation."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from moto import mock_aws

from infra import smoke
from tests.services.cragside_server import CragsideServer, Given

TOKEN = "a-token-of-the-smoke-test"
FACT = "Mercury's orbit puzzled astronomers because its perihelion moves faster than Newton's laws allow."


@pytest.fixture(scope="module")
def service() -> Iterator[CragsideServer]:
    with CragsideServer(Given(token=TOKEN, documents={"mercury.md": f"# Mercury\n\n{FACT}\n"}, baked=True)) as running:
        yield running


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws(config={"core": {"passthrough": {"urls": [r"http://127\.0\.0\.1.*"]}}}):
        yield boto3.Session(region_name="us-east-1")


def deploy(session: boto3.Session, stack: str, **outputs: str) -> None:
    group = {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": f"/{stack}"}}
    template = {"Resources": {"Logs": group}, "Outputs": {key: {"Value": value} for key, value in outputs.items()}}
    session.client("cloudformation").create_stack(StackName=stack, TemplateBody=json.dumps(template))


def test_a_deployed_service_is_found_and_asked(
    service: CragsideServer, session: boto3.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    # While a token is exchanged, its secret has both.
    both = f"{TOKEN}\nthe-old-one"
    secret = session.client("secretsmanager").create_secret(Name="token", SecretString=both)["ARN"]
    deploy(session, "cragside-dev-service", Endpoint=service.url, TokenSecret=secret)
    assert smoke.main(["-c", "env=dev"], session) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == [
        "It runs.",
        "All that it needs is there.",
        "A request without a token is refused.",
        "Evidence was found: 'local'.",
    ]
    assert said[4].startswith("  [1] 'Mercury")
    assert TOKEN not in "".join(said)


def test_a_token_in_a_parameter_is_found(service: CragsideServer, session: boto3.Session) -> None:
    session.client("ssm").put_parameter(Name="/cragside/dev/token", Type="SecureString", Value=TOKEN)
    arn = "arn:aws:ssm:us-east-1:123456789012:parameter/cragside/dev/token"
    deploy(session, "cragside-dev-service", Endpoint=service.url, TokenSecret=arn)
    assert smoke.main(["-c", "env=dev"], session) == 0


def test_a_token_that_cannot_be_sent_is_not_shown(
    service: CragsideServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAGSIDE_TOKEN", "hunter2\nhunter3")
    assert smoke.main(["--url", service.url]) == 2
    told = capsys.readouterr()
    assert "The token cannot be part of a header" in told.err
    assert "hunter" not in told.out + told.err


def test_a_service_without_an_answer_fails(
    service: CragsideServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAGSIDE_TOKEN", TOKEN)
    question = "Which rotor diameter has the turbine of Hornsea?"
    assert smoke.main(["--url", service.url, "--question", question]) == 1
    assert f"Nothing was found for {question!r}" in capsys.readouterr().err


def test_a_wrong_token_fails(
    service: CragsideServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRAGSIDE_TOKEN", "wrong")
    assert smoke.main(["--url", service.url]) == 1
    assert "POST /v1/enrich: 401, the question is not answered" in capsys.readouterr().err


def answering(**changes: Any) -> httpx.Client:
    """A service whose answer is as it should be but for the changes."""
    context = {"verdict": "local", "degraded": [], "documents": [{"title": "Mercury"}]}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET" or "Authorization" not in request.headers:
            return httpx.Response(200 if request.method == "GET" else changes.get("anonymous", 401))
        body = {"prompt": changes.get("prompt", "[1] Mercury"), "metadata": {"rag_context": {**context, **changes}}}
        return httpx.Response(200, json=body)

    return httpx.Client(base_url="http://deployed", transport=httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"anonymous": 200}, "a request without a token is answered"),
        ({"degraded": [{"component": "graph", "reason": "timeout"}]}, r"'graph' \('timeout'\)"),
        ({"prompt": "Why?"}, r"does not cite 'Mercury' as \[1\]"),
    ],
)
def test_an_answer_that_is_not_as_it_should_be_fails(changes: dict[str, Any], reason: str) -> None:
    assert list(smoke.checks(answering(), "Why?", TOKEN))[-1] == "  [1] 'Mercury'"
    with pytest.raises(smoke.Failed, match=reason):
        list(smoke.checks(answering(**changes), "Why?", TOKEN))


_ODD = "\x1b]0;owned\x07\n::error::forged"


@pytest.mark.parametrize("body", ["<html>", "{}", "[]", '{"metadata": {"rag_context": 7}}', json.dumps(_ODD)])
def test_an_answer_of_something_else_is_an_error_in_one_plain_line(body: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        refused = request.method == "POST" and "Authorization" not in request.headers
        return httpx.Response(401 if refused else 200, text=body)

    http = httpx.Client(base_url="http://deployed", transport=httpx.MockTransport(answer))
    with pytest.raises(smoke.Failed, match="is none of cragside's") as failed:
        list(smoke.checks(http, "Why?", TOKEN))
    assert str(failed.value).isprintable()


def test_what_a_service_says_is_shown_without_its_control_characters() -> None:
    odd = {"documents": [{"title": _ODD}], "prompt": f"[1] {_ODD}", "verdict": _ODD}
    assert all(line.isprintable() for line in smoke.checks(answering(**odd), "Why?", TOKEN))
    unwell = httpx.MockTransport(lambda _: httpx.Response(500, text=_ODD))
    with pytest.raises(smoke.Failed, match="500") as failed:
        list(smoke.checks(httpx.Client(base_url="http://deployed", transport=unwell), "Why?", TOKEN))
    assert str(failed.value).isprintable()


def test_an_environment_that_is_not_deployed_ends_the_command(
    session: boto3.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert smoke.main(["-c", "env=staging"], session) == 2
    assert "cragside-staging-" in capsys.readouterr().err
    assert smoke.main(["-c", "env=nowhere"], session) == 2


@pytest.fixture
def without_configuration(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No credentials and no region."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "PROFILE", "REGION", "DEFAULT_REGION"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    return monkeypatch


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "You must specify a region"),
        ({"AWS_REGION": "us-east-1"}, "Unable to locate credentials"),
        ({"AWS_PROFILE": "nobody"}, "The config profile (nobody) could not be found"),
    ],
    ids=["region", "credentials", "profile"],
)
def test_without_credentials_or_region_a_command_says_what_to_set(
    said: dict[str, str],
    reason: str,
    without_configuration: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in said.items():
        without_configuration.setenv(name, value)
    assert smoke.main(["-c", "env=dev"]) == 2
    remedy = "Set credentials and the region, such as with AWS_PROFILE and AWS_REGION"
    assert capsys.readouterr().err == f"AWS does not say what is deployed: {reason}. {remedy}\n"


def test_an_argument_that_means_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        smoke.main(["-c", "env=dev", "nonsense"])
    assert "unrecognized arguments: nonsense" in capsys.readouterr().err
