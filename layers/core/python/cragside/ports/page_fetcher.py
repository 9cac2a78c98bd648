"""Getting what is behind a URL that somebody else chose."""

from dataclasses import dataclass
from typing import Protocol

from cragside.domain.errors import ValidationError


class FetchFailed(ValidationError):
    """A URL that could not or must not be fetched, or whose page cannot be read.

    `reason` is rag-stack's: `fetch_failed`, `timeout`, `ssrf_blocked`, `too_large`, `redirect_limit` or
    `unsupported_content_type: ...`; or ours for a page of a type that can be read: `unreadable: ...`. `status` is the
    HTTP status if there was an answer.
    """

    def __init__(self, url: str, reason: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message, url=url, reason=reason, status=status)
        self.url = url
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page's bytes. `url` is where the last redirect led; `content_type` is without parameters, in lower case."""

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
