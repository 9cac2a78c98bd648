"""The object store port: a folder and a bucket keep the same contract."""

import io
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from cragside.adapters.aws.s3 import S3ObjectStore
from cragside.domain.errors import NotFound, PayloadTooLarge
from cragside.ports.files import ObjectStore
from tests.fakes import FolderObjectStore

# More than the adapter reads at once.
LARGE = bytes(range(256)) * 10_000


@pytest.fixture(scope="module", params=["folder", "bucket", "bucket without prefix"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    """A folder, or the prefix of a bucket, with the objects, which no test changes."""
    held = {"a.json": b"{}", "sub/b.bin": LARGE, "empty": b""}
    if request.param == "folder":
        folder = tmp_path_factory.mktemp("objects")
        for name, content in held.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        yield folder
        return
    prefix = "" if "without" in request.param else "deep/store"
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="a-bucket")
        for name, content in held.items():
            client.put_object(Bucket="a-bucket", Key=f"{prefix}/{name}".lstrip("/"), Body=content)
        yield prefix


@pytest.fixture
def objects(place: Path | str) -> ObjectStore:
    return FolderObjectStore(place) if isinstance(place, Path) else S3ObjectStore("a-bucket", place)


@pytest.mark.parametrize(("name", "content"), [("a.json", b"{}"), ("sub/b.bin", LARGE), ("empty", b"")])
async def test_an_object_of_the_maximum_size_is_read_whole(objects: ObjectStore, name: str, content: bytes) -> None:
    held = io.BytesIO()
    await objects.fetch(name, held, limit=len(content))
    assert held.getvalue() == content


async def test_a_longer_object_is_cut_off_at_the_limit(objects: ObjectStore) -> None:
    held = io.BytesIO()
    with pytest.raises(PayloadTooLarge, match="more than 1000"):
        await objects.fetch("sub/b.bin", held, limit=1000)
    assert len(held.getvalue()) <= 1000


@pytest.mark.parametrize("name", ["c", "sub", "a.json/x"])
async def test_a_missing_object_is_not_found(objects: ObjectStore, name: str) -> None:
    with pytest.raises(NotFound):
        await objects.fetch(name, io.BytesIO(), limit=10)


async def test_a_closed_adapter_reconnects_when_it_is_asked(objects: ObjectStore) -> None:
    for _ in range(2):
        await objects.disconnect()
        await objects.fetch("a.json", held := io.BytesIO(), limit=10)
        assert held.getvalue() == b"{}"


async def test_the_address_is_one(objects: ObjectStore) -> None:
    assert objects.address.startswith("s3://")
    assert not objects.address.endswith("/")
