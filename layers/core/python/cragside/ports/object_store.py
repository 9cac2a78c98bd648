"""Named files in another place."""

from typing import BinaryIO, Protocol


class ObjectStore(Protocol):
    """A folder of objects, such as a bucket below a prefix."""

    @property
    def address(self) -> str:
        """Its address for messages, without secrets."""

    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        """Write an object of at most `limit` bytes to `to`.

        Raises `NotFound`; `PayloadTooLarge` for a longer one, after at most `limit` bytes; `ConfigurationError` if the
        store cannot be used (no access, no such bucket, no client library); `ServiceUnavailable("object_store", ...)`.
        """

    async def disconnect(self) -> None:
        """Close connections and forget credentials. The next `fetch` connects again."""
