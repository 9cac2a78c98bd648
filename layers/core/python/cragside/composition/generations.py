"""Writes the next generation of a workspace, and shows, brings back and forgets earlier ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.application.inbox import REFUSED, WAITING
from cragside.domain.errors import NotFound, ValidationError
from cragside.domain.names import memory_of, spoken
from cragside.ports.files import ObjectVersion, VersionedStore

if TYPE_CHECKING:
    from cragside.store.generations import Generation

# The file, its copy that SQLite compacts into, and the packed one.
_ROOM = 3


@dataclass(frozen=True, slots=True)
class Draft:
    """The newest generation of a store below `home`, where it can be changed."""

    home: Path
    _objects: VersionedStore
    _workspace: str
    _before: "Generation | None"

    async def publish(self) -> int:
        """Publish the store, which nobody has open, and return its number.

        Raises `ObjectChanged` if somebody else has published one meanwhile.
        """
        from cragside.store.generations import publish_generation

        fresh = await publish_generation(self._objects, self._workspace, self.home / self._workspace, self._before)
        return fresh.number


@asynccontextmanager
async def drafted(objects: VersionedStore, workspace: str) -> AsyncIterator[Draft]:
    """Fetch the newest generation of a store, if there is one, into a folder that is removed in the end."""
    from cragside.store.baked import file_of
    from cragside.store.generations import fetch_generation
    from cragside.store.temporary import OwnFolder

    folder = OwnFolder("writing")
    try:
        home = await asyncio.to_thread(folder.make)
        before = None
        with suppress(NotFound):  # it is the first one
            before = await fetch_generation(objects, workspace, home / file_of(workspace), room=_ROOM)
        yield Draft(home, objects, workspace, before)
    finally:
        await asyncio.to_thread(folder.remove)


async def kept(objects: VersionedStore, workspace: str) -> list[ObjectVersion]:
    """Return the generations of a store that the bucket keeps, newest first. Raises `ValidationError`."""
    from cragside.store.generations import object_of

    return [each for each in await objects.versions(object_of(workspace)) if each.size]


async def roll_back(objects: VersionedStore, workspace: str, version: str = "") -> int:
    """Publish an earlier generation, by default the one before the newest, as the next. Return its number.

    Raises `NotFound` if there is none, and `ObjectChanged` if somebody publishes meanwhile.
    """
    from cragside.store.baked import file_of
    from cragside.store.generations import fetch_generation, publish_file
    from cragside.store.temporary import OwnFolder

    earlier = [each.id for each in await kept(objects, workspace) if not each.newest]
    if not version and not earlier:
        raise NotFound(f"Workspace {spoken(workspace)} has no earlier generation.")
    folder = OwnFolder("writing")
    try:
        home = await asyncio.to_thread(folder.make)
        newest = None
        with suppress(NotFound):  # somebody has removed it
            newest = await fetch_generation(objects, workspace, home / "newest" / file_of(workspace))
        path = home / "earlier" / file_of(workspace)
        await fetch_generation(objects, workspace, path, version=version or earlier[0])
        return (await publish_file(objects, workspace, path, newest)).number
    finally:
        await asyncio.to_thread(folder.remove)


async def forget(objects: VersionedStore, workspace: str, *, whole: bool) -> int:
    """Delete for good what is kept of a workspace and its memory beside the newest generations. Return the number.

    That is earlier generations, and changes that were made or refused. With `whole`, all is deleted.
    """
    from cragside.store.generations import object_of

    count = 0
    for name in (memory_of(workspace), workspace):
        folders = object_of(name), f"{WAITING}{name}/", f"{REFUSED}{name}/"
        for folder in folders:
            found = await objects.versions(folder)
            waits = folder.startswith((WAITING, object_of(name)))
            ended = [each for each in found if whole or not (waits and each.newest and each.size)]
            await objects.forget(ended)
            count += sum(1 for each in ended if each.size)
    return count


def choice_of(versions: list[ObjectVersion], wanted: str) -> str:
    """Return the version that `wanted`, the beginning of its id, names. Raises `ValidationError`."""
    found = [each.id for each in versions if each.id.startswith(wanted)]
    if len(found) != 1:
        raise ValidationError(f"{wanted} names {len(found)} generations. `cragside generations list` shows them.")
    return found[0]
