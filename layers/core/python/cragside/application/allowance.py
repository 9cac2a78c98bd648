"""Limits of what a client may store.

A context variable holds the allowance during a request. So it applies to every entry, current and future, without being
passed on.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from cachetools import FIFOCache

from cragside.domain.document import SourceText
from cragside.domain.errors import Forbidden, ServiceUnavailable
from cragside.domain.indexing import DocumentKey, Stored
from cragside.domain.names import owner_of
from cragside.domain.tokens import Limits
from cragside.ports.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from cragside.store.workspaces import Workspaces

# Sizes of other workspaces of the same token may be this old (seconds).
_REMEMBERED = 2.0
_MOST_KNOWN = 10_000
_log = logging.getLogger("cragside")


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of a token, and the workspaces that count towards them (None is all)."""

    token: str
    limits: Limits
    workspaces: tuple[str, ...] | None = None


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def allow(allowance: Allowance | None) -> None:
    """Apply this allowance to the rest of this request, including tasks that it starts."""
    _current.set(allowance)


def taking_turns(workspace: str) -> str:
    """Name the party that takes turns with others: the token of this request, or else the workspace."""
    allowance = _current.get()
    return workspace if allowance is None else f"token {allowance.token}"


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    token: str
    workspace: str
    bytes: int
    key: DocumentKey | None

    def more(self, stored: Mapping[str, Stored]) -> tuple[int, int]:
        """The documents and bytes that it adds to `stored`, where a document that it replaces is counted already.

        While changes wait for another database, they keep the replaced text, and get the new one beside it.
        """
        known = stored.get(self.workspace, Stored())
        if self.key is None or self.key not in known.sizes:
            return 1, max(self.bytes, 1)
        return 0, max(self.bytes - (0 if known.waiting else known.sizes[self.key]), 0)


class StorageLimits:
    """Refuses documents that exceed the limits of their token.

    Documents that this process is about to store count, so concurrent requests cannot exceed a limit together.
    Documents that other processes are about to store do not count, so these may exceed it.
    """

    def __init__(self, workspaces: "Workspaces", *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._workspaces = workspaces
        self._clock = clock
        self._held: set[_Held] = set()
        # Requests wait only for requests of the same token.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._known: FIFOCache[str, tuple[float, Stored]] = FIFOCache(_MOST_KNOWN)

    async def check(self, workspace: str, size: int = 0, key: DocumentKey | None = None) -> None:
        """Raises `Forbidden` if there is no room for a document of at least `size` bytes. See `room`."""
        async with self.room(workspace, size, key):
            pass

    async def check_workspace(self, workspace: str) -> None:
        """Raises `Forbidden` for a workspace without a store, if the token has a limit of workspaces.

        That limit counts stores. What is kept for other workspaces would have none.
        """
        allowance = _current.get()
        if allowance is None or (most := allowance.limits.workspaces) is None:
            return
        if owner_of(workspace) not in {owner_of(name) for name in await self._names(allowance)}:
            raise Forbidden(
                f"The token has a limit of {most} workspaces, so this needs a workspace with documents. Add one first.",
                limit="workspaces",
                most=most,
            )

    async def check_change(self, workspace: str) -> None:
        """Raises `Forbidden` for a change of documents that are there, if changes that wait leave no room for more."""
        allowance = _current.get()
        if allowance is None or (most := allowance.limits.bytes) is None:
            return
        change = _Held(allowance.token, workspace, 0, None)
        stored = [await self._stored(name, [change]) for name in await self._names(allowance)]
        if waiting := sum(each.waiting for each in stored):
            _refuse_above("bytes", most, sum(each.bytes for each in stored), 1, waiting)

    @asynccontextmanager
    async def room(self, workspace: str, size: int, key: DocumentKey | None = None) -> AsyncIterator[None]:
        """Reserve room for a document of `size` bytes during the block. Raises `Forbidden` if there is none.

        If the workspace has a document of this `key`, only the bytes beyond the size of that document need room.
        """
        allowance = _current.get()
        if allowance is None or not allowance.limits:
            yield
            return
        held = _Held(allowance.token, workspace, size, key)
        async with self._locks.setdefault(allowance.token, asyncio.Lock()):
            await self._check(allowance, held)
            self._held.add(held)
        try:
            yield
        finally:
            self._held.discard(held)

    async def _check(self, allowance: Allowance, wanted: _Held) -> None:
        limits = allowance.limits
        # Pending documents are read before stored ones: one that is stored meanwhile counts twice, not never.
        others = [held for held in self._held if held.token == allowance.token]
        names = await self._names(allowance)
        owners, owner = {owner_of(name) for name in names}, owner_of(wanted.workspace)
        if limits.workspaces is not None and owner not in owners:
            made = owners | {owner_of(held.workspace) for held in others} - {owner}
            _refuse_above("workspaces", limits.workspaces, len(made), 1)
        if limits.documents is None and limits.bytes is None:
            return
        stored = {name: await self._stored(name, [wanted, *others]) for name in names}
        # Pending documents are counted again, because the documents that they replace may have been deleted.
        underway = [held.more(stored) for held in others]
        documents, size = wanted.more(stored)
        if limits.documents is not None and documents:
            there = sum(each.documents for each in stored.values()) + sum(each for each, _ in underway)
            _refuse_above("documents", limits.documents, there, documents)
        if limits.bytes is not None and size:
            there = sum(each.bytes for each in stored.values()) + sum(each for _, each in underway)
            _refuse_above("bytes", limits.bytes, there, size, sum(each.waiting for each in stored.values()))

    async def _names(self, allowance: Allowance) -> Sequence[str]:
        names = await self._workspaces.names()
        return (
            names
            if allowance.workspaces is None
            else [name for name in names if owner_of(name) in allowance.workspaces]
        )

    async def _stored(self, workspace: str, wanted: Sequence[_Held]) -> Stored:
        """Return the sizes of a workspace. They are read again if `wanted` documents go to it."""
        looked, known = self._known.get(workspace, (0.0, None))
        here = [held for held in wanted if held.workspace == workspace]
        if known is None or here or self._clock.monotonic() - looked > _REMEMBERED:
            try:
                known = await self._workspaces.stored(workspace, [held.key for held in here if held.key])
            except ServiceUnavailable as error:
                # An unreadable store must not block the others.
                known = known or Stored()
                _log.warning("The storage limits use the last known size of workspace %s: %s", workspace, error.message)
            self._known[workspace] = self._clock.monotonic(), replace(known, sizes={})
        return known


def weight(source: SourceText) -> int:
    """Return the bytes of a document: those of its file or its text, whichever is larger, and of its metadata."""
    text = len(source.text.encode(errors="replace"))
    return max(source.size or 0, text) + metadata_weight(source.metadata)


def metadata_weight(metadata: Mapping[str, Any]) -> int:
    """Return the bytes of metadata."""
    return len(json.dumps(dict(metadata), default=str)) if metadata else 0


def _refuse_above(limit: str, most: int, there: int, more: int, waiting: int = 0) -> None:
    if there + more > most:
        remedy = "Use an existing workspace" if limit == "workspaces" else "Delete documents"
        if waiting:
            remedy = f"{waiting} of them wait for another database to answer. Try again later, delete documents"
        raise Forbidden(
            f"The token's limit of {most} {limit} leaves no room: {there} are stored or pending. {remedy}, or "
            f"have the limit raised (cragside token new --max-{limit}, RAG_LIMIT_{limit.upper()}).",
            limit=limit,
            most=most,
            stored=there,
        )
