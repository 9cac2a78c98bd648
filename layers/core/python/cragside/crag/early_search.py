"""Searches the web while a model still judges the passages, in case none of them answers."""

import asyncio
from typing import Any

from cragside.ports.search_service import SearchService


class EarlySearch:
    """Begins a search before it is known to be needed. `drop` it in the end."""

    def __init__(self, service: SearchService) -> None:
        self._service = service
        self._searching: asyncio.Task[list[dict[str, Any]]] | None = None
        self.query: str | None = None

    def begin(self, query: str) -> None:
        """Begin the search, unless it has begun."""
        if self._searching is None:
            self.query = query
            self._searching = asyncio.create_task(self._service.search(query))

    async def results(self, query: str) -> list[dict[str, Any]]:
        """Return the results for a query, from the search that has begun if it is for this one.

        Raises what the search raises.
        """
        if self._searching is None or query != self.query:
            return await self._service.search(query)
        return await self._searching

    async def drop(self) -> None:
        """End the search if it is under way, and wait for that. Nobody gets its results or its error any more."""
        if self._searching is not None:
            self._searching.cancel()
            await asyncio.wait({self._searching})
            if not self._searching.cancelled():
                self._searching.exception()
