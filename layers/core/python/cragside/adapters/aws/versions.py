"""A versioned S3 bucket, whose objects are replaced only if they are the expected ones."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, BinaryIO, ClassVar, TypeVar

from typing_extensions import override

from cragside.adapters.aws.s3 import S3ObjectStore
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.files import ObjectChanged, ObjectVersion, VersionedStore

_CHUNK = 1 << 20
# S3 answers a PUT when it has stored the whole object.
_READ_SECONDS = 60
# What S3 says of a conditional write: another one was faster, is under way, or the object is gone.
_LOST = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict", "409"})
_UNCHANGED = frozenset({"304", "NotModified"})
_AT_ONCE = 1000

Result = TypeVar("Result")


class S3VersionedStore(S3ObjectStore, VersionedStore):
    """Versions of the objects of a bucket whose keys begin with `prefix/`."""

    _read_seconds: ClassVar[int] = _READ_SECONDS

    @override
    async def read(
        self, name: str, to: Callable[[ObjectVersion], Callable[[bytes], object]], *, known: str = "", version: str = ""
    ) -> ObjectVersion | None:
        def read(client: Any) -> ObjectVersion | None:
            asked = {"IfNoneMatch": known} if known else {}
            asked |= {"VersionId": version} if version else {}
            try:
                answer = client.get_object(Bucket=self._bucket, Key=self._key(name), **asked)
            except client.exceptions.ClientError as error:
                if _code(error) in _UNCHANGED:
                    return None
                raise
            with closing(answer["Body"]) as body:
                found = _version(name, answer, answer["ContentLength"], answer.get("Metadata", {}))
                write = to(found)
                for chunk in body.iter_chunks(_CHUNK):
                    write(chunk)
                return found

        return await self._run(name, "read", "s3:GetObject", read)

    @override
    async def replace(self, name: str, content: BinaryIO, *, expected: str | None, facts: Mapping[str, str]) -> str:
        def write(client: Any) -> str:
            condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
            try:
                answer = client.put_object(
                    Bucket=self._bucket, Key=self._key(name), Body=content, Metadata=dict(facts), **condition
                )
            except client.exceptions.ClientError as error:
                if _code(error) in _LOST or (expected is not None and _code(error) in ("NoSuchKey", "404")):
                    raise ObjectChanged(name) from error
                raise
            return str(answer["ETag"])

        return await self._run(name, "written", "s3:PutObject", write)

    @override
    async def names(self, prefix: str) -> Sequence[str]:
        def listed(client: Any) -> list[str]:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._key(prefix))
            return sorted(self._name(each["Key"]) for page in pages for each in page.get("Contents", ()))

        return await self._run(prefix, "listed", "s3:ListBucket", listed)

    @override
    async def remove(self, name: str) -> None:
        def remove(client: Any) -> None:
            client.delete_object(Bucket=self._bucket, Key=self._key(name))

        await self._run(name, "removed", "s3:DeleteObject", remove)

    @override
    async def versions(self, prefix: str) -> Sequence[ObjectVersion]:
        def listed(client: Any) -> list[ObjectVersion]:
            pages = client.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=self._key(prefix))
            return [self._listed(each) for page in pages for each in _versions_of(page)]

        found = await self._run(prefix, "listed", "s3:ListBucketVersions", listed)
        return sorted(found, key=lambda each: (each.name, not each.newest))

    @override
    async def forget(self, versions: Sequence[ObjectVersion]) -> None:
        def forget(client: Any) -> None:
            for start in range(0, len(versions), _AT_ONCE):
                each = [{"Key": self._key(one.name), "VersionId": one.id} for one in versions[start : start + _AT_ONCE]]
                answer = client.delete_objects(Bucket=self._bucket, Delete={"Objects": each, "Quiet": True})
                if failed := answer.get("Errors"):
                    reason = f"S3 did not delete {len(failed)} versions ({failed[0].get('Code')})."
                    raise ServiceUnavailable("object_store", reason)

        if versions:
            await self._run("its versions", "removed", "s3:DeleteObjectVersion", forget)

    def _name(self, key: str) -> str:
        return key.removeprefix(f"{self._prefix}/") if self._prefix else key

    def _listed(self, each: Mapping[str, Any]) -> ObjectVersion:
        return _version(self._name(each["Key"]), each, each.get("Size", 0), {}, newest=bool(each["IsLatest"]))

    async def _run(self, name: str, done: str, permission: str, work: Callable[[Any], Result]) -> Result:
        def run() -> Result:
            with self._asked(name, done, permission) as client:
                return work(client)

        return await asyncio.to_thread(run)


def _version(
    name: str, answer: Mapping[str, Any], size: int, facts: Mapping[str, str], *, newest: bool = True
) -> ObjectVersion:
    at = answer["LastModified"].isoformat(timespec="seconds")
    return ObjectVersion(name, str(answer.get("VersionId", "")), str(answer.get("ETag", "")), at, size, newest, facts)


def _versions_of(page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield versions, and the marks of deletions, which are versions without content."""
    yield from page.get("Versions", ())
    yield from page.get("DeleteMarkers", ())


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
