"""A store to which clients upload large files directly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cragside.ports.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class UploadForm:
    """A form for one file: `multipart/form-data` with these fields, followed by the file as `file`.

    Its holder can upload this one file and nothing else.
    """

    url: str
    fields: Mapping[str, str]


class UploadStore(ObjectStore, Protocol):
    """An object store to which clients upload. All methods raise the errors of `fetch`."""

    async def form(self, name: str, *, most_bytes: int, seconds: int) -> UploadForm:
        """A form for an object of that name, of 1 to `most_bytes` bytes, valid for `seconds`."""

    async def remove(self, name: str) -> None:
        """Remove an object if it exists."""
