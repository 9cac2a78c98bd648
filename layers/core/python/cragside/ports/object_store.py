"""Files kept elsewhere, by name."""

from typing import BinaryIO, Protocol


class ObjectStore(Protocol):
    """A folder of objects, such as a bucket below a prefix."""

    @property
    def address(self) -> str:
        """Where it is, for messages; without secrets."""

    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        """Write an object of at most `limit` bytes to `to`.

        Raises `NotFound`; `PayloadTooLarge` for a longer one, of which no more than `limit` bytes are written;
        `ConfigurationError` when the store cannot be used like this (no access, no such bucket, no client library);
        and `ServiceUnavailable("object_store", ...)`.
        """

    async def disconnect(self) -> None:
        """Close connections and forget credentials; the next `fetch` connects anew."""
