"""The search behind `/query` and `/query/data`."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import Request

from cragside.application.grading import GRADE_SHARE
from cragside.application.passages import Found, Lookup
from cragside.bootstrap import Container
from cragside.domain.errors import DeadlineExceeded, ValidationError
from cragside.ports.workspaces import Neighbourhood

T = TypeVar("T")


class PassageSearch:
    """Finds passages in a workspace within the time that a request has."""

    def __init__(self, container: Container, request: Request, workspace: str) -> None:
        self.workspace = workspace
        self.passages = container.passages
        self._settings = container.settings
        self._clock = container.clock
        self._ends: float | None = getattr(request.state, "ends", None)

    def seconds_left(self) -> float:
        """The time that is left: that of the host, `RAG_TIMEOUT_SECONDS` at most."""
        left = self._settings.timeout_seconds if self._ends is None else self._ends - self._clock.monotonic()
        return min(left, self._settings.timeout_seconds)

    async def within(self, work: Awaitable[T]) -> T:
        """The work's result. Raises `DeadlineExceeded`."""
        try:
            async with asyncio.timeout(self.seconds_left()):
                return await work
        except TimeoutError as error:
            raise DeadlineExceeded("The knowledge base did not answer in time.") from error

    async def find(self, lookup: Lookup) -> Found:
        """The passages. Raises `ValidationError` for a question that is too long."""
        limit = self._settings.max_prompt_characters
        if len(lookup.question) > limit:
            raise ValidationError(f"The query has {len(lookup.question)} characters; the limit is {limit}.")
        seconds = self.seconds_left() * GRADE_SHARE
        return await self.passages.find(lookup, workspace=self.workspace, seconds=seconds)

    async def with_graph(self, lookup: Lookup, *, graph: bool) -> tuple[Found, Neighbourhood | None]:
        """The passages, and with `graph` the entities around them."""
        found = await self.find(lookup)
        return found, await self.passages.around(found.hits, workspace=self.workspace) if graph else None
