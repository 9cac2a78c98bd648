"""Reads files, and fetches them from pages and buckets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from cragside.domain.document import SourceText
from cragside.domain.errors import ValidationError


class DocumentLoader(Protocol):
    """Reads files of many types. Files are untrusted, so time and memory are bounded."""

    async def load(
        self, content: bytes, *, name: str, content_type: str | None = None, workspace: str = ""
    ) -> SourceText:
        """Return the text of a file, with pages, sections, title, document type and tier 1.

        The type follows `content_type` if it is specific, else the ending of the name. Raises `PayloadTooLarge` with
        the limit, and `ValidationError` with the reason for unsupported, damaged, encrypted, hostile or empty files.
        Workspaces take turns; `ServiceUnavailable` is raised if the file's turn does not come in time.
        """


FETCHING_IS_OFF = "This service fetches nothing from URLs (RAG_FETCH_PAGES=false). Send the content itself."


class FetchFailed(ValidationError):
    """A URL that cannot or must not be fetched, or whose page cannot be read.

    `reason` is rag-stack's: `fetch_failed`, `timeout`, `ssrf_blocked`, `too_large`, `redirect_limit` or
    `unsupported_content_type: ...`; or, for a damaged page of a supported type, `unreadable: ...`; or
    `fetching_is_off` where nothing is fetched. `status` is the HTTP status if there was an answer.
    """

    def __init__(self, url: str, reason: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message, url=url, reason=reason, status=status)
        self.url = url
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The bytes of a page. `url` is that of the last redirect; `content_type` is in lower case, without parameters."""

    url: str
    content: bytes
    content_type: str
    charset: str | None = None
    status: int = 200


class PageFetcher(Protocol):
    """Fetches pages from public addresses only."""

    async def fetch(self, url: str, *, workspace: str = "") -> FetchedPage:
        """Return the page. Workspaces take turns. Raises `FetchFailed`."""

    async def close(self) -> None:
        """Close connections."""


class ObjectStore(Protocol):
    """Reads a folder of objects, such as a bucket below a prefix."""

    @property
    def address(self) -> str:
        """Return its address for messages, without secrets."""

    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        """Write an object of at most `limit` bytes to `to`.

        Raises `NotFound`; `PayloadTooLarge` for a longer one, after at most `limit` bytes; `ConfigurationError` if the
        store cannot be used (no access, no such bucket, no client library); `ServiceUnavailable("object_store", ...)`.
        """

    async def disconnect(self) -> None:
        """Close connections and forget credentials. The next `fetch` connects again."""


@dataclass(frozen=True, slots=True)
class UploadForm:
    """A form for one file: `multipart/form-data` with these fields, followed by the file as `file`.

    Its holder can upload this one file and nothing else.
    """

    url: str
    fields: Mapping[str, str]


class UploadStore(ObjectStore, Protocol):
    """Takes what clients upload. All methods raise the errors of `fetch`."""

    async def form(self, name: str, *, most_bytes: int, seconds: int) -> UploadForm:
        """Return a form for an object of that name, of 1 to `most_bytes` bytes, valid for `seconds`."""

    async def remove(self, name: str) -> None:
        """Remove an object if it exists."""


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """A version of an object. `etag` tells contents apart, `at` is ISO 8601 in UTC, `size` counts bytes."""

    name: str
    id: str
    etag: str
    at: str
    size: int
    newest: bool = True
    facts: Mapping[str, str] = field(default_factory=dict)


class ObjectChanged(Exception):
    """The object is not the one that a write was to replace: somebody else has written it meanwhile."""


class VersionedStore(Protocol):
    """Keeps objects of which each write makes a version. All methods raise the errors of `ObjectStore.fetch`."""

    @property
    def address(self) -> str:
        """Return its address for messages, without secrets."""

    async def read(
        self, name: str, to: Callable[[ObjectVersion], Callable[[bytes], object]], *, known: str = "", version: str = ""
    ) -> ObjectVersion | None:
        """Pass the pieces of an object to what `to` returns for it. Return None if its etag is `known`.

        `to` may raise, before anything is read. Raises `NotFound`.
        """

    async def replace(self, name: str, content: BinaryIO, *, expected: str | None, facts: Mapping[str, str]) -> str:
        """Write an object if its etag is the `expected` one; None expects that there is none. Return the new etag.

        Raises `ObjectChanged`. The content is read anew if it has to be sent twice.
        """

    async def names(self, prefix: str) -> Sequence[str]:
        """Return the names of the objects that begin with the prefix, in order."""

    async def remove(self, name: str) -> None:
        """Remove an object if it exists. Its versions stay."""

    async def versions(self, prefix: str) -> Sequence[ObjectVersion]:
        """Return all versions of the objects that begin with the prefix, the newest of each first, without `facts`."""

    async def forget(self, versions: Sequence[ObjectVersion]) -> None:
        """Delete versions for good."""

    async def disconnect(self) -> None:
        """Close connections and forget credentials. The next call connects again."""
