"""Collect parts that wait to be written, so that they are written together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from cragside.domain.indexing import Task
from cragside.ports.embedder import Vectors
from cragside.store.chunking import StoredPart
from cragside.store.drafts import Draft, Extracted
from cragside.store.driver import Row
from cragside.store.ledger import Ledger

logger = logging.getLogger("cragside")


@dataclass(eq=False, slots=True)
class Share:
    """Keeps what a part waits to write. After a failure a share is written `alone`."""

    task: Task
    part: StoredPart
    alone: bool = field(default=False, kw_only=True)
    done: bool = field(default=False, kw_only=True)

    @property
    def passages(self) -> int:
        """Count the part's passages."""
        return self.part.last - self.part.first + 1


@dataclass(eq=False, slots=True)
class GraphShare(Share):
    """Keeps entities and relations of a part, with their draft and their tally."""

    draft: Draft
    extracted: Extracted
    tally: Mapping[str, int]


@dataclass(eq=False, slots=True)
class VectorShare(Share):
    """Keeps the passages of a part, and their vectors in the same order."""

    rows: Mapping[str, Row]
    vectors: Vectors


Kind = TypeVar("Kind", bound=Share)
Write = Callable[[Ledger, Sequence[Kind]], Awaitable[bool]]


class Merges(Generic[Kind]):
    """Writes shares one after the other, and those together that wait for the same lease.

    What many parts mention is then read, described, embedded and written once for all of them.
    """

    def __init__(self, held: Callable[[], AbstractAsyncContextManager[Ledger]], most_passages: int) -> None:
        """`held` takes the lease, and gives the ledger to write `most_passages` with."""
        self._held = held
        self._most_passages = most_passages
        self._turn = asyncio.Lock()
        self._waiting: list[Kind] = []

    async def run(self, share: Kind, write: Write[Kind]) -> None:
        """Write a share, unless another task does it with its own meanwhile.

        Where `write` fails or returns False, shares that were written together are written one by one.
        """
        self._waiting.append(share)
        try:
            async with self._turn:
                if not share.done:
                    async with self._held() as ledger:
                        await self._write(ledger, share, write)
        finally:
            self._waiting.remove(share)

    async def _write(self, ledger: Ledger, share: Kind, write: Write[Kind]) -> None:
        together = self._beside(share)
        if len(together) > 1 and not await self._written(ledger, together, write):
            for each in together:
                each.alone = True
        if not share.done:
            await write(ledger, [share])
            share.done = True

    async def _written(self, ledger: Ledger, together: Sequence[Kind], write: Write[Kind]) -> bool:
        try:
            written = await write(ledger, together)
        except Exception as error:
            logger.info("%d parts are written one by one: %s", len(together), type(error).__name__)
            return False
        for each in together:
            each.done = written
        return written

    def _beside(self, share: Kind) -> list[Kind]:
        """Return the share and others that may be written with it, the first that came first."""
        together, passages = [share], share.passages
        for each in self._waiting:
            if share.alone or each.alone or each.done or each is share:
                continue
            passages += each.passages
            if passages > self._most_passages:
                break
            together.append(each)
        return together
