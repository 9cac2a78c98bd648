"""Forms for a bucket: what they allow, and what is said when there can be none."""

import base64
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from cragside.adapters.aws.s3 import S3UploadStore
from cragside.domain.errors import ConfigurationError, CragsideError, ServiceUnavailable

SIGNED = {"x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-security-token"}


def asked(condition: Any) -> set[str]:
    return set(condition) if isinstance(condition, dict) else {condition[0]}


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("us-east-1", "https://s3.amazonaws.com/a-bucket"),
        ("eu-central-1", "https://s3.eu-central-1.amazonaws.com/a-bucket"),
    ],
)
async def test_a_form_allows_one_object_of_bounded_size_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch, region: str, url: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    with mock_aws():
        form = await S3UploadStore("a-bucket", "in").form("kb/0f", most_bytes=5000, seconds=900)
    assert form.url == url
    policy = json.loads(base64.b64decode(form.fields["policy"]))
    conditions = policy["conditions"]
    assert [each for each in conditions if not asked(each) <= SIGNED] == [
        ["content-length-range", 1, 5000],
        {"bucket": "a-bucket"},
        {"key": "in/kb/0f"},
    ]
    assert form.fields.keys() - SIGNED == {"key", "policy", "x-amz-signature"}
    assert form.fields["key"] == "in/kb/0f"
    until = datetime.fromisoformat(policy["expiration"]) - datetime.now(UTC)
    assert until <= timedelta(seconds=900)


async def test_a_place_of_its_own_is_where_forms_lead_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9000")
    with mock_aws():
        form = await S3UploadStore("a-bucket").form("kb/0f", most_bytes=5, seconds=9)
    assert form.url == "http://localhost:9000/a-bucket"


async def test_without_credentials_there_is_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with pytest.raises(ConfigurationError, match="credentials"):
        await S3UploadStore("a-bucket").form("kb/0f", most_bytes=5, seconds=9)


async def test_without_boto3_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match="Install the extra `aws` of cragside"):
        await S3UploadStore("a-bucket").form("kb/0f", most_bytes=5, seconds=9)


@pytest.mark.parametrize(
    ("failure", "kind", "said"),
    [
        (ClientError({"Error": {"Code": "AccessDenied"}}, "DeleteObject"), ConfigurationError, "s3:DeleteObject"),
        (ClientError({"Error": {"Code": "SlowDown"}}, "DeleteObject"), ServiceUnavailable, "SlowDown"),
        (EndpointConnectionError(endpoint_url="http://x"), ServiceUnavailable, "does not answer"),
    ],
)
async def test_a_failed_removal_of_an_object_is_reported(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[CragsideError], said: str
) -> None:
    class Client:
        def delete_object(self, **_: Any) -> None:
            raise failure

    monkeypatch.setattr(boto3, "client", lambda *_, **__: Client())
    with pytest.raises(kind, match=said):
        await S3UploadStore("a-bucket").remove("kb/0f")
