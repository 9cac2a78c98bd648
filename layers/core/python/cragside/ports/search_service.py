"""Searches outside the knowledge base."""

from abc import ABC, abstractmethod
from typing import Any


class SearchService(ABC):
    """Searches the web."""

    @abstractmethod
    async def search(self, query: str) -> list[dict[str, Any]]:
        """Return results as `{"title", "url", "content"}`, best first; [] if there are none.

        Raises `ServiceUnavailable("search", ...)` if the engine is down or misconfigured, or if all its sources failed.
        """

    @abstractmethod
    async def check(self) -> None:
        """Ask whether the engine is there, without a search. Raises `ServiceUnavailable("search", ...)` if not."""

    @abstractmethod
    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        """Turn the question into a query for a search engine. `model` is the chat model of the request.

        Raises `ServiceUnavailable("rewriter", ...)` if the model fails.
        """
