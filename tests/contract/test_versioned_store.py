"""Versions of objects in a bucket: conditional writes, conditional reads, and what is forgotten."""

import io
from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from cragside.adapters.aws.versions import S3VersionedStore
from cragside.domain.errors import ConfigurationError, NotFound
from cragside.ports.files import ObjectChanged, ObjectVersion

LARGE = bytes(range(256)) * 10_000


@pytest.fixture(params=["", "deep/kb"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3VersionedStore]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="a-bucket")
        client.put_bucket_versioning(Bucket="a-bucket", VersioningConfiguration={"Status": "Enabled"})
        client.put_object(Bucket="a-bucket", Key="deep/kb-2/beside", Body=b"")
        yield S3VersionedStore("a-bucket", request.param)


async def content(store: S3VersionedStore, name: str, **asked: str) -> tuple[bytes, ObjectVersion] | None:
    pieces: list[bytes] = []
    found = await store.read(name, lambda _: pieces.append, **asked)
    return None if found is None else (b"".join(pieces), found)


async def put(store: S3VersionedStore, name: str, body: bytes, expected: str | None = None, **facts: str) -> str:
    return await store.replace(name, io.BytesIO(body), expected=expected, facts=facts)


async def test_an_object_is_read_with_its_facts(store: S3VersionedStore) -> None:
    etag = await put(store, "ws/a", LARGE, sha256="0" * 64)
    found = await content(store, "ws/a")
    assert found is not None
    body, version = found
    assert (body == LARGE, version.etag, version.size, dict(version.facts)) == (
        True,
        etag,
        len(LARGE),
        {"sha256": "0" * 64},
    )
    assert await content(store, "ws/a", known=etag) is None


async def test_a_write_replaces_only_what_it_expects(store: S3VersionedStore) -> None:
    first = await put(store, "ws/a", b"1")
    with pytest.raises(ObjectChanged):
        await put(store, "ws/a", b"new")
    second = await put(store, "ws/a", b"2", first)
    with pytest.raises(ObjectChanged):
        await put(store, "ws/a", b"3", first)
    with pytest.raises(ObjectChanged):
        await put(store, "ws/none", b"3", first)
    found = await content(store, "ws/a")
    assert found is not None
    assert (found[0], found[1].etag) == (b"2", second)


async def test_names_are_those_below_the_prefix(store: S3VersionedStore) -> None:
    for name in ("in/b/2", "in/b/1", "in/c/1", "ws/b"):
        await put(store, name, b"x")
    assert await store.names("in/b/") == ["in/b/1", "in/b/2"]
    await store.remove("in/b/1")
    await store.remove("in/b/none")
    assert await store.names("in/") == ["in/b/2", "in/c/1"]


async def test_versions_are_kept_until_they_are_forgotten(store: S3VersionedStore) -> None:
    first = await put(store, "ws/a", b"1")
    await put(store, "ws/a", b"22", first)
    await put(store, "ws/b", b"3")
    newest, earlier = await store.versions("ws/a")
    assert [(each.newest, each.size) for each in (newest, earlier)] == [(True, 2), (False, 1)]
    old = await content(store, "ws/a", version=earlier.id)
    assert old is not None
    assert old[0] == b"1"
    await store.forget([earlier])
    assert [each.id for each in await store.versions("ws/a")] == [newest.id]
    await store.remove("ws/a")
    mark, left = await store.versions("ws/a")
    assert (mark.size, mark.newest, left.id) == (0, True, newest.id)
    await store.forget([mark, left])
    assert await store.versions("ws/a") == []
    with pytest.raises(NotFound):
        await content(store, "ws/a")
    await store.forget([])


async def test_a_bucket_that_is_not_there_is_named(store: S3VersionedStore) -> None:
    with pytest.raises(ConfigurationError, match="no bucket other"):
        await S3VersionedStore("other").names("ws/")
