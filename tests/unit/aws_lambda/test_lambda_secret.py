"""A function whose token is in Secrets Manager, as the stack deploys it."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from lambda_stub import Context, close, event, function_of
from moto import mock_aws

from cragside.bootstrap import Container
from cragside.entrypoints.aws_lambda.function import Function, start, try_out
from cragside.settings import load_settings


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The ARN of a secret that holds `old`."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield boto3.client("secretsmanager").create_secret(Name="token", SecretString="old")["ARN"]


@pytest.fixture
def built(secret: str, tmp_path: Any) -> Container:
    return Container(load_settings({"RAG_HOME": str(tmp_path), "RAG_API_TOKEN_SECRET": secret}))


@pytest.fixture
def function(built: Container) -> Iterator[Function]:
    function = function_of(built)
    yield function
    close(function, built)


def status_with(function: Function, token: str) -> Any:
    return function.answer(
        event(headers={"host": "localhost", "content-type": "application/json", "x-api-key": token}), Context()
    )["statusCode"]


def test_the_secrets_token_is_asked_for(function: Function) -> None:
    assert [status_with(function, token) for token in ("old", "new", "")] == [200, 401, 401]


def test_two_tokens_are_valid_while_they_are_exchanged(function: Function, secret: str) -> None:
    boto3.client("secretsmanager").put_secret_value(SecretId=secret, SecretString="new\n\nold\n")
    assert [status_with(function, token) for token in ("old", "new", "", "new\n\nold")] == [200, 200, 401, 401]


def test_the_token_does_not_go_into_a_snapshot(function: Function, built: Container, secret: str) -> None:
    function._runner.run(try_out(built))
    boto3.client("secretsmanager").put_secret_value(SecretId=secret, SecretString="new")
    assert status_with(function, "old") == 200
    function._runner.run(built.disconnect())
    assert [status_with(function, token) for token in ("old", "new")] == [401, 200]


def test_a_deleted_secret_denies_all_requests(function: Function, secret: str) -> None:
    boto3.client("secretsmanager").delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    assert [status_with(function, token) for token in ("old", "")] == [503, 503]


def test_a_function_starts_with_only_a_secret(secret: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name, value in {"RAG_API_TOKEN_SECRET": secret, "RAG_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    handler = start()
    asked = event(headers={"host": "localhost", "x-api-key": "wrong"})
    assert handler(asked, Context())["statusCode"] == 401
