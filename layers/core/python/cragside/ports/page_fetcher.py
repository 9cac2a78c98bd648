"""Fetches pages from untrusted URLs."""

from dataclasses import dataclass
from typing import Protocol

from cragside.domain.errors import ValidationError

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
        """The page. Workspaces take turns. Raises `FetchFailed`."""

    async def close(self) -> None:
        """Close connections."""
