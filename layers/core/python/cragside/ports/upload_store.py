"""A store to which clients upload large files directly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cragside.ports.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class UploadForm:
    """Where one file is sent to: `multipart/form-data` with these fields, and the file after them as `file`.

    The holder of the fields can send this one file and nothing else.
    """

    url: str
    fields: Mapping[str, str]


class UploadStore(ObjectStore, Protocol):
    """An object store whose objects come from clients. What `fetch` says of errors holds for all of it."""

    async def form(self, name: str, *, most_bytes: int, seconds: int) -> UploadForm:
        """A form for an object of that name, of 1 to `most_bytes` bytes, valid for `seconds`."""

    async def remove(self, name: str) -> None:
        """Remove an object; there need not be one."""
