"""Fixtures that several of these files share."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cragside.adapters.aws import secrets as kept


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Secrets Manager, which is asked with each refusal."""
    monkeypatch.setattr(kept, "_TRIES_AFTER_SECONDS", 0.0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        yield boto3.client("secretsmanager")
