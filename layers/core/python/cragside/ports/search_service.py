"""Search outside the knowledge base."""

from abc import ABC, abstractmethod
from typing import Any


class SearchService(ABC):
    """Port for external search."""

    @abstractmethod
    async def search(self, query: str) -> list[dict[str, Any]]:
        """Results as `{"title", "url", "content"}`, best first; [] when the web truly has nothing.

        Raises `ServiceUnavailable("search", ...)` when the engine is down, misconfigured, or all its sources failed.
        """

    @abstractmethod
    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        """The query as a search engine likes it. `model` is the chat model that the request names.

        Raises `ServiceUnavailable("rewriter", ...)` when the model that should rewrite does not.
        """
