"""Passwords for RDS, which botocore signs without a network."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from cragside.adapters.aws.secrets import DatabaseTokens
from cragside.bootstrap import Container
from cragside.domain.errors import ConfigurationError
from cragside.settings import load_settings

HOST = "rag.abc.eu-central-1.rds.amazonaws.com"


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default session keeps the credentials that it has found once."""
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    for name in ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")


async def test_a_token_is_signed_for_the_host_the_port_and_the_user(credentials: None) -> None:
    token = await DatabaseTokens(HOST, 6543, "rag user").make()
    parts = urlsplit(f"https://{token}")
    query = parse_qs(parts.query)
    assert (parts.netloc, query["DBUser"], query["Action"]) == (f"{HOST}:6543", ["rag user"], ["connect"])
    assert query["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
    assert query["X-Amz-Credential"][0].endswith("/eu-central-1/rds-db/aws4_request")
    assert query["X-Amz-Expires"] == ["900"]
    assert "hunter2" not in token


async def test_each_connection_gets_a_token_of_its_own(credentials: None, tmp_path: Path) -> None:
    address = f"postgresql://rag@{HOST}/rag?auth=iam&sslmode=verify-full"
    database = Container(load_settings({"RAG_HOME": str(tmp_path), "POSTGRES_URI": address})).database
    assert database is not None
    password = (await database.addresses.current()).arguments()["password"]
    assert (await password()).startswith(f"{HOST}:5432/?")


async def test_missing_credentials_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="auth=iam in POSTGRES_URI needs AWS credentials"):
        await DatabaseTokens(HOST, 5432, "rag").make()
