"""Copies, checks and bakes whole stores."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.composition.stores import Stores
from cragside.databases.gate import ServerFailure
from cragside.databases.sqlite_files import is_damage
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.faults import Fault
from cragside.domain.names import memory_of
from cragside.settings import Settings
from cragside.store.baked import damage_of, is_baked, misplaced, read_manifest
from cragside.store.baking import Baking
from cragside.store.errors import LedgerError

if TYPE_CHECKING:
    from cragside.store.copying import Copier, Place

__all__ = ["Copies", "baking", "damage_in", "is_baked", "may_be_damaged", "misplaced"]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies workspaces with their memories and their preferences."""

    source: Stores
    target: Stores

    async def workspaces(self) -> list[str]:
        """Return the workspaces of the source, in order."""
        return await _place_of(self.source).workspaces()

    async def in_the_way(self, workspace: str) -> int:
        """Count the documents and exchanges that the target has in a workspace of this name."""
        place = _place_of(self.target)
        return await place.holds(workspace) + await place.holds(memory_of(workspace))

    async def copy(self, workspace: str, *, replace: bool, progress: Callable[[int], None]) -> int:
        """Copy a workspace as `Copier.copy` does, and the source's preferences for it.

        Unfinished work is queued at the target, whose worker looks for such work only when it starts. Nothing is copied
        if the target's queue does not answer.
        """
        await self.target.queue.stats()
        count = await self._copier().copy(workspace, replace=replace, progress=progress)
        before = await self.target.preference_store.changes(workspace)
        wanted = await self.source.preference_store.changes(workspace)
        if dict(before) != dict(wanted):
            await self.target.preference_store.change(workspace, {**dict.fromkeys(before), **wanted})
        from cragside.adapters.embedded.keywords import searched_words

        for store in (workspace, memory_of(workspace)):
            tasks = await _place_of(self.target).unfinished(store, search_text=searched_words)
            await self.target.queue.send(tasks)
        return count

    async def copy_documents(self, workspace: str) -> int:
        """Copy a workspace without its memory and its preferences, to where there is none of this name."""
        return await self._copier().copy(workspace, replace=False, progress=lambda _: None, memory=False)

    def _copier(self) -> "Copier":
        from cragside.adapters.embedded.keywords import searched_words
        from cragside.store.copying import Copier

        places = _place_of(self.source), _place_of(self.target)
        seconds, clock = self.target.lease_seconds, self.target.clock
        return Copier(*places, search_text=searched_words, lease_seconds=seconds, clock=clock)


def _place_of(container: Stores) -> "Place":
    from cragside.store.copying import Place
    from cragside.store.home import Home

    pinned, objects = container.settings.home_sha256, container.object_store
    home = container.generations or Home(container.folder, container.backend, sha256=pinned, objects=objects)
    return Place(home, container.backend)


Check = Callable[[], Awaitable[None]]
# Nobody waits for these checks.
_PATIENCE_SECONDS = 10.0


def outside_checks(stores: "Stores") -> dict[str, Check]:
    """Return a check of each configured database, by its component. A check sends one small request.

    It raises `ServiceUnavailable`, whose message has the remedy if there is one.
    """
    checks: dict[str, Check] = {}
    if (graphs := stores.graphs) is not None:
        checks["graph"] = _check("graph", "Neo4j", graphs.server)
    if (vectors := stores.vectors) is not None:
        checks["vectors"] = _check("vectors", "Qdrant", vectors.server)
    if (redis := stores.redis) is not None:
        checks["values"] = _check("values", "Redis", redis.ping)
    return checks


async def faults(stores: "Stores", patience: float = _PATIENCE_SECONDS) -> list[str]:
    """Describe what is wrong with the configured databases, and what to do; [] if all can be used."""

    async def fault(component: str, check: Check) -> str:
        try:
            async with asyncio.timeout(patience):
                await check()
        except TimeoutError:
            return str(Fault.late(component, patience))
        except ServiceUnavailable as error:
            return str(Fault.of(component, error, error.message))
        return ""

    found = await asyncio.gather(*(fault(*each) for each in outside_checks(stores).items()))
    return [each for each in found if each]


def _check(component: str, server: str, ask: Callable[[], Awaitable[object]]) -> Check:
    async def check() -> None:
        try:
            await ask()
        except (LedgerError, ServerFailure) as error:
            message = f"The part of the store in {server} {error.unusable}."
            raise ServiceUnavailable(component, message) from error

    return check


def damage_in(home: Path) -> str:
    """Return the differences from a baked store's manifest, by hash. "" if there are none, or no baked store."""
    found = read_manifest(home)
    return "" if found is None else damage_of(home, found[0], hashes=True)


def may_be_damaged(error: Exception) -> bool:
    """Tell if the store itself failed, rather than its folder or its model."""
    if isinstance(error, ServiceUnavailable):
        return error.component == "knowledge_base" and (error.__cause__ is None or is_damage(error.__cause__))
    return is_damage(error)


@contextmanager
def baking(settings: Settings, out: Path) -> Iterator[tuple[Settings, Baking]]:
    """Settings that index into a new store with the embedded models, and the `Baking` that publishes it as `out`."""
    with Baking.into(out) as baked:
        changed = {
            "ollama_base_url": None,
            "model_host": None,
            "searxng_host": None,
            "chat_model": "embedded",
            "embedding_model": "embedded",
        }
        yield settings.in_files(baked.home).model_copy(update=changed), baked
