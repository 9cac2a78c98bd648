"""Queues work that the queue lacks, as after a crash between accepting a document and queueing its tasks."""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from cragside.domain.errors import CragsideError
from cragside.domain.memory_name import spoken
from cragside.ports.index_queue import IndexQueue
from cragside.ports.workspaces import Workspaces

logger = logging.getLogger("cragside")


@dataclass(frozen=True, slots=True)
class Swept:
    """How many workspaces were looked through, and how many tasks were queued."""

    workspaces: int = 0
    tasks: int = 0


class Sweeper:
    """Queues the tasks that libraries wait for. What was given up stays given up."""

    def __init__(self, queue: IndexQueue, workspaces: Workspaces) -> None:
        self._queue = queue
        self._workspaces = workspaces

    async def sweep(self, in_hand: Collection[str] = ()) -> Swept:
        """Queue what is unfinished in each workspace, also what a killed worker had begun, except tasks in hand.

        A workspace that cannot be opened is logged and left out. Raises `ServiceUnavailable` if the queue takes none.
        """
        workspaces, tasks = 0, 0
        for name in await self._workspaces.names():
            if (sent := await self._sweep(name, in_hand)) is not None:
                workspaces, tasks = workspaces + 1, tasks + sent
        return Swept(workspaces, tasks)

    async def sweep_if_idle(self) -> Swept | None:
        """The same, or None if the queue has tasks: a queue that keeps duplicates would get them all again."""
        stats = await self._queue.stats()
        return None if stats.pending + stats.processing else await self.sweep()

    async def _sweep(self, name: str, in_hand: Collection[str]) -> int | None:
        try:
            library = (await self._workspaces.open(name)).documents
            tasks = await library.restart(failures=False)
            await (await self._workspaces.open(name)).work.give_back()
        except CragsideError as error:
            logger.warning("Workspace %s is left out for now: %s", spoken(name), error.message_with_place)
            return None
        missing = [task for task in tasks if task.key not in in_hand]
        await self._queue.send(missing)
        return len(missing)
