"""An S3 bucket as an object store, and as a store to which clients upload."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from typing import Any, BinaryIO, ClassVar

from typing_extensions import override

from cragside.adapters.aws.client import AwsClient
from cragside.domain.errors import ConfigurationError, CragsideError, NotFound, PayloadTooLarge
from cragside.ports.files import ObjectStore, UploadForm, UploadStore

_CHUNK = 1 << 20
_READ_SECONDS = 10
_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
_REFUSED = frozenset({
    "AccessDenied", "AllAccessDisabled", "403", "Forbidden", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
    "SignatureDoesNotMatch",
})  # fmt: skip


class S3ObjectStore(ObjectStore):
    """Objects of an S3 bucket whose keys begin with `prefix/`."""

    _options: ClassVar[Mapping[str, Any]] = {}
    _read_seconds: ClassVar[int] = _READ_SECONDS

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        seconds, options = self._read_seconds, self._options
        self._aws = AwsClient("s3", self.address, component="object_store", read_seconds=seconds, **options)

    @property
    @override
    def address(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    @override
    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        await asyncio.to_thread(self._fetch, name, to, limit)

    @override
    async def disconnect(self) -> None:
        self._aws.close()

    def _fetch(self, name: str, to: BinaryIO, limit: int) -> None:
        with self._asked(name, "read", "s3:GetObject") as client:
            answer = client.get_object(Bucket=self._bucket, Key=self._key(name))
            with closing(answer["Body"]) as body:
                if (length := answer["ContentLength"]) > limit:
                    raise PayloadTooLarge(f"{self.address}/{name} has {length} bytes, more than {limit}.")
                left = limit
                for chunk in body.iter_chunks(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise PayloadTooLarge(f"{self.address}/{name} has more than {limit} bytes.")
                    to.write(chunk)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _asked(self, name: str, done: str, permission: str) -> AbstractContextManager[Any]:
        """Return the client, to have the object `name` read, sent or removed (`done`), which needs the `permission`."""

        def refusal(code: str) -> CragsideError | None:
            if code in _MISSING:
                return NotFound(f"{self.address} has no object {name}.")
            if code == "NoSuchBucket":
                return ConfigurationError(f"There is no bucket {self._bucket}. Check its name and the region.")
            if code in _REFUSED:
                return ConfigurationError(
                    f"{self.address}/{name} may not be {done} ({code}). Allow {permission}, and s3:ListBucket, without "
                    "which S3 does not tell missing objects from forbidden ones."
                )
            return None

        return self._aws.connected(refusal)


class S3UploadStore(UploadStore, S3ObjectStore):
    """Clients upload with a form whose key, size and time limit S3 enforces."""

    # Every region accepts v4 signatures. Path-style addresses lead to the region's own endpoint. boto3's default is the
    # global endpoint, which redirects for a while after a bucket was created, and clients do not send a file twice.
    _options: ClassVar[Mapping[str, Any]] = {"signature_version": "s3v4", "s3": {"addressing_style": "path"}}

    @override
    async def form(self, name: str, *, most_bytes: int, seconds: int) -> UploadForm:
        """Return a presigned POST. Signing asks S3 nothing: missing permissions show when a client uses the form."""
        return await asyncio.to_thread(self._form, name, most_bytes, seconds)

    @override
    async def remove(self, name: str) -> None:
        await asyncio.to_thread(self._remove, name)

    def _form(self, name: str, most_bytes: int, seconds: int) -> UploadForm:
        with self._asked(name, "sent", "s3:PutObject") as client:
            from botocore.exceptions import NoCredentialsError

            try:
                form = client.generate_presigned_post(
                    self._bucket,
                    self._key(name),
                    Conditions=[["content-length-range", 1, most_bytes]],
                    ExpiresIn=seconds,
                )
            except AttributeError as error:  # botocore signs forms without checking that it has credentials
                raise NoCredentialsError from error
        return UploadForm(form["url"], form["fields"])

    def _remove(self, name: str) -> None:
        with self._asked(name, "removed", "s3:DeleteObject") as client:
            client.delete_object(Bucket=self._bucket, Key=self._key(name))
