"""Copying workspaces from one container's place to another's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cragside.adapters.embedded.keywords import searched_words
from cragside.composition.stores import Stores
from cragside.domain.memory_name import memory_of

if TYPE_CHECKING:
    from cragside.adapters.lightrag.copying import Copier, Place

__all__ = ["Copies"]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies workspaces with their memories and their preferences."""

    source: Stores
    target: Stores

    async def workspaces(self) -> list[str]:
        """The workspaces of the source, in order."""
        return await _place_of(self.source).workspaces()

    async def in_the_way(self, workspace: str) -> int:
        """How many documents and exchanges the target has of a workspace."""
        place = _place_of(self.target)
        return await place.holds(workspace) + await place.holds(memory_of(workspace))

    async def copy(self, workspace: str, *, replace: bool, progress: Callable[[int], None]) -> int:
        """See `Copier.copy`. The target gets the source's preferences for the workspace as well.

        What is still to be done of it is queued: the worker of the target may have looked for that long ago. Nothing is
        copied if the target's queue does not answer.
        """
        await self.target.queue.stats()
        count = await self._copier().copy(workspace, replace=replace, progress=progress)
        before = await self.target.preference_store.changes(workspace)
        wanted = await self.source.preference_store.changes(workspace)
        if dict(before) != dict(wanted):
            await self.target.preference_store.change(workspace, {**dict.fromkeys(before), **wanted})
        for store in (workspace, memory_of(workspace)):
            tasks = await _place_of(self.target).unfinished(store, search_text=searched_words)
            await self.target.queue.send(tasks)
        return count

    async def copy_documents(self, workspace: str) -> int:
        """Copy a workspace without its memory and its preferences, to where there is none of this name."""
        return await self._copier().copy(workspace, replace=False, progress=lambda _: None, memory=False)

    def _copier(self) -> "Copier":
        from cragside.adapters.lightrag.copying import Copier

        places = _place_of(self.source), _place_of(self.target)
        seconds, clock = self.target.lease_seconds, self.target.clock
        return Copier(*places, search_text=searched_words, lease_seconds=seconds, clock=clock)


def _place_of(container: Stores) -> "Place":
    from cragside.adapters.lightrag.copying import Place
    from cragside.adapters.lightrag.files.home import Home

    pinned = container.settings.home_sha256
    return Place(
        Home(container.folder, container.backend, sha256=pinned, objects=container.object_store), container.backend
    )
