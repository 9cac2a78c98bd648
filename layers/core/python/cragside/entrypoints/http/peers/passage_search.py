"""The search behind `/query` and `/query/data`."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import Request

from cragside.application.passages import Hit, Lookup, PassageFinder
from cragside.bootstrap import Container
from cragside.domain.errors import DeadlineExceeded, ValidationError

T = TypeVar("T")


class PassageSearch:
    """Finds passages in a workspace within the time that a request has."""

    def __init__(self, container: Container, request: Request, workspace: str) -> None:
        self.workspace = workspace
        self.passages = PassageFinder(container.workspaces, container.retriever)
        self._settings = container.settings
        self._ends: float | None = getattr(request.state, "ends", None)

    def seconds_left(self) -> float:
        """The time that is left: that of the host, `RAG_TIMEOUT_SECONDS` at most."""
        left = self._settings.timeout_seconds if self._ends is None else self._ends - time.monotonic()
        return min(left, self._settings.timeout_seconds)

    async def within(self, work: Awaitable[T]) -> T:
        """The work's result. Raises `DeadlineExceeded`."""
        try:
            async with asyncio.timeout(self.seconds_left()):
                return await work
        except TimeoutError as error:
            raise DeadlineExceeded("The knowledge base did not answer in time.") from error

    async def find(self, lookup: Lookup) -> list[Hit]:
        """The passages. Raises `ValidationError` for a question that is too long."""
        limit = self._settings.max_prompt_characters
        if len(lookup.question) > limit:
            raise ValidationError(f"The query has {len(lookup.question)} characters; the limit is {limit}.")
        return await self.passages.find(lookup, workspace=self.workspace)
