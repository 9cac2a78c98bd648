"""Reads files, and fetches them from pages and buckets."""

from collections.abc import Mapping
from dataclasses import dataclass
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
