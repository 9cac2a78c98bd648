"""Collect what waits to be merged into a store's graph, so that it is merged together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from cragside.domain.indexing import Task
from cragside.store.chunking import StoredPart
from cragside.store.drafts import Draft, Extracted

# Passages that are merged together: an event loop does nothing else while as many are written.
_MOST_PASSAGES = 40

logger = logging.getLogger("cragside")


@dataclass(eq=False, slots=True)
class Share:
    """Entities and relations of a part, with their draft and their tally. After a failure a share is merged `alone`."""

    task: Task
    part: StoredPart
    draft: Draft
    extracted: Extracted
    tally: Mapping[str, int]
    alone: bool = False
    done: bool = False


class Merges:
    """Merges shares one after the other, and those that wait together.

    What many parts mention is then read, described, embedded and written once for all of them.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._waiting: list[Share] = []

    async def run(self, share: Share, merge: Callable[[Sequence[Share]], Awaitable[bool]]) -> None:
        """Merge a share, unless another task does it with its own meanwhile.

        Where `merge` fails or returns False, shares that were merged together are merged one by one.
        """
        self._waiting.append(share)
        try:
            async with self._turn:
                if not share.done:
                    await self._merge(share, merge)
        finally:
            self._waiting.remove(share)

    async def _merge(self, share: Share, merge: Callable[[Sequence[Share]], Awaitable[bool]]) -> None:
        together = self._beside(share)
        if len(together) > 1 and not await self._merged(together, merge):
            for each in together:
                each.alone = True
        if not share.done:
            await merge([share])
            share.done = True

    async def _merged(self, together: Sequence[Share], merge: Callable[[Sequence[Share]], Awaitable[bool]]) -> bool:
        try:
            merged = await merge(together)
        except Exception as error:
            logger.info("%d parts are merged one by one: %s", len(together), type(error).__name__)
            return False
        for each in together:
            each.done = merged
        return merged

    def _beside(self, share: Share) -> list[Share]:
        """Return the share and others that may be merged with it, the first that came first."""
        together, passages = [share], len(share.extracted)
        for each in self._waiting:
            if share.alone or each.alone or each.done or each is share:
                continue
            passages += len(each.extracted)
            if passages > _MOST_PASSAGES:
                break
            together.append(each)
        return together
