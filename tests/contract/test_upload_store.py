"""The upload store port: a folder and a bucket keep the same contract. The bucket's forms are sent to moto."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
import requests
from moto import mock_aws

from cragside.adapters.aws.s3 import S3UploadStore
from cragside.domain.errors import NotFound, PayloadTooLarge
from cragside.ports.files import UploadForm, UploadStore
from tests.fakes import FolderUploadStore

# More than the adapter reads at once.
LARGE = bytes(range(256)) * 10_000
Send = Callable[[UploadForm, bytes], None]


def send_to_bucket(form: UploadForm, content: bytes) -> None:
    answer = requests.post(form.url, data=form.fields, files={"file": ("file", content)}, timeout=30)
    assert answer.status_code == 204, answer.text


@pytest.fixture(params=["folder", "bucket", "bucket without prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[UploadStore, Send]]:
    if request.param == "folder":
        folder = FolderUploadStore(tmp_path)
        yield folder, lambda form, content: folder.send(form.fields, content)
        return
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="a-bucket")
        yield S3UploadStore("a-bucket", "" if "without" in request.param else "deep/in"), send_to_bucket


@pytest.mark.parametrize("content", [b"x", LARGE])
async def test_an_uploaded_object_stays_until_it_is_removed(store: tuple[UploadStore, Send], content: bytes) -> None:
    uploads, send = store
    send(await uploads.form("kb/1", most_bytes=len(content), seconds=60), content)
    send(await uploads.form("kb/2", most_bytes=len(content), seconds=60), b"other")
    for _ in range(2):
        await uploads.fetch("kb/1", held := io.BytesIO(), limit=len(content))
        assert held.getvalue() == content
    await uploads.remove("kb/1")
    with pytest.raises(NotFound):
        await uploads.fetch("kb/1", io.BytesIO(), limit=10)
    await uploads.fetch("kb/2", io.BytesIO(), limit=10)


async def test_a_missing_object_is_not_found_and_can_be_removed(store: tuple[UploadStore, Send]) -> None:
    uploads, _ = store
    await uploads.form("kb/1", most_bytes=10, seconds=60)
    await uploads.remove("kb/1")
    with pytest.raises(NotFound):
        await uploads.fetch("kb/1", io.BytesIO(), limit=10)


async def test_an_object_that_is_too_large_is_not_read_to_its_end(store: tuple[UploadStore, Send]) -> None:
    """S3 refuses it ahead (tests/e2e); moto does not hold forms to their policies, and a bucket's rules may change."""
    uploads, send = store
    send(await uploads.form("kb/1", most_bytes=1000, seconds=60), LARGE)
    held = io.BytesIO()
    with pytest.raises(PayloadTooLarge):
        await uploads.fetch("kb/1", held, limit=1000)
    assert len(held.getvalue()) <= 1000
