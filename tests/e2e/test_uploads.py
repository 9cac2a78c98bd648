"""Files by way of a bucket, sent over HTTP to an emulator that holds forms to their policies, as S3 does."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from flight import say

from tests.knowledge import Knowledge
from tests.services.ministack import Ministack, credentials

pytestmark = pytest.mark.e2e

BUCKET, LIMIT = "uploads", 20_000_000
LINE = b"Otters hold hands while they sleep, so that none of them drifts away from the raft.\n\n"


@pytest.fixture
async def knowledge(emulator: Ministack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Knowledge]:
    for name, value in credentials(tmp_path, emulator.url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    built = Knowledge(tmp_path / "kb", uploads=f"s3://{BUCKET}/in", max_file_bytes=LIMIT)
    yield built
    await built.close()
    for each in client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        client.delete_object(Bucket=BUCKET, Key=each["Key"])
    client.delete_bucket(Bucket=BUCKET)


async def offered(knowledge: Knowledge) -> dict[str, Any]:
    offer: dict[str, Any] = (await knowledge.http.post("/v1/documents/uploads", json={})).json()
    return offer


def post(offer: dict[str, Any], content: bytes, **fields: str) -> httpx.Response:
    return httpx.post(offer["url"], data={**offer["fields"], **fields}, files={"file": content}, timeout=60)


async def test_a_large_file_is_uploaded_through_the_bucket(knowledge: Knowledge) -> None:
    offer, content = await offered(knowledge), LINE * 150_000
    assert post(offer, content).status_code == 204
    body = {"upload": offer["id"], "name": "otters.txt", "enrich": False}
    answer = await knowledge.http.post("/v1/documents", json=body)
    assert answer.status_code == 202, answer.text
    document = answer.json()["documents"][0]
    say(f"POST /v1/documents, an upload of {len(content)} bytes: 202, {document['passages']} passages")
    assert document["size"] == len(content)
    assert "Contents" not in boto3.client("s3").list_objects_v2(Bucket=BUCKET)
    assert (await knowledge.http.post("/v1/documents", json=body)).status_code == 404


@pytest.mark.parametrize(
    ("content", "fields", "refusal"),
    [
        (b"x" * (LIMIT + 1), {}, "EntityTooLarge"),
        (b"", {}, "EntityTooSmall"),
        (LINE, {"key": "in/elsewhere/0"}, "AccessDenied"),
        (LINE, {"acl": "public-read"}, "AccessDenied"),
    ],
    ids=["too large", "empty", "another key", "a field more"],
)
async def test_an_upload_form_accepts_only_its_object(
    knowledge: Knowledge, content: bytes, fields: dict[str, str], refusal: str
) -> None:
    answer = post(await offered(knowledge), content, **fields)
    say(f"POST to the bucket, {len(content)} bytes, {fields or 'as offered'}: {answer.status_code} {refusal}")
    assert 400 <= answer.status_code < 500
    assert refusal in answer.text
    assert "Contents" not in boto3.client("s3").list_objects_v2(Bucket=BUCKET)
