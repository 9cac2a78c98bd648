"""Failures of a bucket are reported so that an operator can act on them."""

import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)
from moto import mock_aws

from cragside.adapters.aws.s3 import S3ObjectStore
from cragside.domain.errors import ConfigurationError, CragsideError, PayloadTooLarge, ServiceUnavailable


class Client:
    """An S3 client whose answers, or failures, are given."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def get_object(self, **_: Any) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Body:
    def __init__(self, *chunks: Any) -> None:
        self.chunks = chunks
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def iter_chunks(self, _: int) -> Iterator[bytes]:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk


def answered(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "secret detail"}}, "GetObject")


async def error_of(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> CragsideError:
    monkeypatch.setattr(boto3, "client", lambda *_, **__: Client(outcome))
    with pytest.raises(CragsideError) as caught:
        await S3ObjectStore("a-bucket", "kb").fetch("baked.json", io.BytesIO(), limit=10)
    assert "secret detail" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("code", ["AccessDenied", "403", "ExpiredToken", "SignatureDoesNotMatch"])
async def test_no_access_names_the_object_and_the_permission(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    error = await error_of(monkeypatch, answered(code))
    assert isinstance(error, ConfigurationError)
    assert f"s3://a-bucket/kb/baked.json may not be read ({code})" in error.message
    assert "s3:GetObject" in error.message


async def test_the_error_for_missing_credentials_names_their_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    error = await error_of(monkeypatch, NoCredentialsError())
    assert isinstance(error, ConfigurationError)
    assert "AWS_PROFILE" in error.message


async def test_a_request_that_can_never_be_right_is_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(await error_of(monkeypatch, ParamValidationError(report="Key is empty")), ConfigurationError)


@pytest.mark.parametrize(
    "outcome",
    [
        answered("SlowDown"),
        answered("500"),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        {"ContentLength": 5, "Body": Body(b"ab", ReadTimeoutError(endpoint_url="http://127.0.0.1:1"))},
    ],
)
async def test_a_bucket_that_fails_is_an_outage(monkeypatch: pytest.MonkeyPatch, outcome: Any) -> None:
    error = await error_of(monkeypatch, outcome)
    assert isinstance(error, ServiceUnavailable)
    assert error.component == "object_store"


async def test_an_object_longer_than_declared_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = {"ContentLength": 5, "Body": Body(b"abcdef", b"ghijkl")}
    assert isinstance(await error_of(monkeypatch, outcome), PayloadTooLarge)


@pytest.mark.parametrize(
    ("length", "chunks"),
    [(5, [b"abcde"]), (99, [b"abcde"]), (5, [b"abcdef", b"ghijkl"]), (5, [ReadTimeoutError(endpoint_url="http://x")])],
)
async def test_no_answer_is_left_open(monkeypatch: pytest.MonkeyPatch, length: int, chunks: list[Any]) -> None:
    body = Body(*chunks)
    monkeypatch.setattr(boto3, "client", lambda *_, **__: Client({"ContentLength": length, "Body": body}))
    with suppress(CragsideError):
        await S3ObjectStore("a-bucket", "kb").fetch("baked.json", io.BytesIO(), limit=10)
    assert body.closed == 1


async def test_a_client_that_was_dropped_is_closed_and_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Client] = []

    def client(*_: Any, **__: Any) -> Client:
        made.append(Client({"ContentLength": 2, "Body": Body(b"{}")}))
        return made[-1]

    monkeypatch.setattr(boto3, "client", client)
    objects = S3ObjectStore("a-bucket", "kb")
    for _ in range(2):
        await objects.fetch("baked.json", io.BytesIO(), limit=10)
    await objects.disconnect()
    await objects.fetch("baked.json", io.BytesIO(), limit=10)
    assert [client.closed for client in made] == [1, 0]


async def test_a_bucket_that_is_not_there_is_named() -> None:
    with mock_aws(), pytest.raises(ConfigurationError, match="no bucket no-such-bucket"):
        await S3ObjectStore("no-such-bucket").fetch("baked.json", io.BytesIO(), limit=10)


async def test_a_refused_connection_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_MAX_ATTEMPTS": "1",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        await S3ObjectStore("a-bucket").fetch("baked.json", io.BytesIO(), limit=10)


async def test_without_boto3_the_remedy_is_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match="Install the extra `aws` of cragside"):
        await S3ObjectStore("a-bucket").fetch("baked.json", io.BytesIO(), limit=10)


async def test_a_missing_profile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigurationError, match="nobody"):
        await S3ObjectStore("a-bucket").fetch("baked.json", io.BytesIO(), limit=10)
