"""A bucket below a prefix as an object store, and as a place that clients send files to."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from typing_extensions import override

from cragside.domain.errors import ConfigurationError, CragsideError, NotFound, PayloadTooLarge, ServiceUnavailable
from cragside.ports.object_store import ObjectStore
from cragside.ports.upload_store import UploadForm, UploadStore

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_CHUNK = 1 << 20
_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 3, 10, 3
_MISSING = frozenset({"NoSuchKey", "404", "NotFound"})
# Codes of answers that are the same the next time.
_REFUSED = frozenset(
    {
        "AccessDenied",
        "AllAccessDisabled",
        "403",
        "Forbidden",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
    }
)


class S3ObjectStore(ObjectStore):
    """Objects of an S3 bucket whose keys begin with `prefix/`.

    Credentials, region and endpoint come from where AWS' own tools take them.
    """

    # What the client is told beside its time limits.
    _options: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = prefix.strip("/")
        self._client: Any = None
        self._connecting = threading.Lock()  # boto3 does not make clients in several threads at a time

    @property
    def address(self) -> str:
        """`s3://bucket/prefix`."""
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    @override
    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        await asyncio.to_thread(self._fetch, name, to, limit)

    @override
    async def disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

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

    @contextmanager
    def _asked(self, name: str, done: str, permission: str) -> Iterator[Any]:
        """The client, whose failures are told in the port's words. `permission` is what it needs to have it `done`."""
        with self._connecting:
            client = self._client = self._client or self._connected()
        from botocore.exceptions import BotoCoreError, ClientError  # after what says so when boto3 is not there

        try:
            yield client
        except ClientError as error:
            raise self._refusal(name, done, permission, error) from error
        except BotoCoreError as error:
            raise self._failure(error) from error

    def _connected(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError as error:
            raise ConfigurationError(
                f"{self.address} needs boto3, which is not installed: pip install 'cragside[aws]'"
            ) from error
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            **self._options,
        )
        try:
            return boto3.client("s3", config=config)
        except (BotoCoreError, ValueError) as error:  # a profile that is not there, an endpoint that is no address
            raise ConfigurationError(f"{self.address} cannot be asked: {_reason(error)}.") from error

    def _refusal(self, name: str, done: str, permission: str, error: "ClientError") -> CragsideError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _MISSING:
            return NotFound(f"{self.address} has no object {name}.")
        if code == "NoSuchBucket":
            return ConfigurationError(f"There is no bucket {self._bucket}. Check its name and the region.")
        if code in _REFUSED:
            return ConfigurationError(
                f"{self.address}/{name} may not be {done} ({code}). Allow {permission}, and s3:ListBucket to have "
                "missing objects told from forbidden ones."
            )
        return ServiceUnavailable("object_store", f"S3 failed ({code[:60]}).").at(self.address)

    def _failure(self, error: Exception) -> CragsideError:
        from botocore.exceptions import (
            ConfigNotFound,
            CredentialRetrievalError,
            NoCredentialsError,
            ParamValidationError,
            PartialCredentialsError,
            ProfileNotFound,
        )

        if isinstance(error, (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)):
            return ConfigurationError(
                f"{self.address} needs AWS credentials, and none were found. Give the function a role, or set "
                "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        if isinstance(error, (ConfigNotFound, ProfileNotFound, ParamValidationError)):
            return ConfigurationError(f"{self.address} cannot be asked: {_reason(error)}.")
        return ServiceUnavailable("object_store", f"S3 does not answer ({type(error).__name__}).").at(self.address)


class S3UploadStore(UploadStore, S3ObjectStore):
    """Objects that clients send by themselves, each with a form that S3 holds them to: key, size and time."""

    # Signed as every region takes it, and sent to the region's own endpoint: boto3's default is the global one, which
    # redirects for a while after a bucket was made, and clients do not send a file twice.
    _options: ClassVar[Mapping[str, Any]] = {"signature_version": "s3v4", "s3": {"addressing_style": "path"}}

    async def form(self, name: str, *, most_bytes: int, seconds: int) -> UploadForm:
        """A presigned POST. Nothing but credentials is asked for, and whether they may write shows when it is used."""
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
            except AttributeError as error:  # of requests botocore checks that there are credentials, of forms not
                raise NoCredentialsError from error
        return UploadForm(form["url"], form["fields"])

    def _remove(self, name: str) -> None:
        with self._asked(name, "removed", "s3:DeleteObject") as client:
            client.delete_object(Bucket=self._bucket, Key=self._key(name))


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200]
