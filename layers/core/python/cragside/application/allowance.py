"""How much whoever asks may store.

The allowance stands in a context variable for the time of a request. So it holds in every way in, none of which has to
hand it on, and in one that is added later on.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from cachetools import FIFOCache

from cragside.domain.document import SourceText
from cragside.domain.errors import Forbidden, ServiceUnavailable
from cragside.domain.indexing import Stored
from cragside.domain.memory_name import owner_of
from cragside.domain.tokens import Limits
from cragside.ports.rag_repository import Workspaces

# What other processes put into other workspaces of the same token is noticed within this time (seconds).
_REMEMBERED = 2.0
_MOST_KNOWN = 10_000
_log = logging.getLogger("cragside")


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of a token, and the workspaces that it opens (None is all), in which what is stored counts."""

    holder: str
    limits: Limits
    workspaces: tuple[str, ...] | None = None


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


def allow(allowance: Allowance | None) -> None:
    """Have this allowance hold for what this request does from now on, tasks that it starts included."""
    _current.set(allowance)


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    holder: str
    workspace: str
    bytes: int


class StorageLimits:
    """Refuses documents for which their token has no room.

    What this process is about to store counts, so that requests at the same time do not get past a limit together.
    Other processes count when they have stored: the most that is stored beyond a limit is what they have in hand.
    """

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._held: set[_Held] = set()
        # A token's requests wait for each other, and for nobody else's.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._known: FIFOCache[str, tuple[float, Stored]] = FIFOCache(_MOST_KNOWN)

    async def check(self, workspace: str, size: int = 0) -> None:
        """Raises `Forbidden` when there is no room for one more document of at least `size` bytes."""
        async with self.room(workspace, size):
            pass

    @asynccontextmanager
    async def room(self, workspace: str, size: int) -> AsyncIterator[None]:
        """Keep room for one document of `size` bytes meanwhile. Raises `Forbidden` when there is none."""
        allowance = _current.get()
        if allowance is None or not allowance.limits:
            yield
            return
        held = _Held(allowance.holder, workspace, size)
        async with self._locks.setdefault(allowance.holder, asyncio.Lock()):
            await self._check(allowance, held)
            self._held.add(held)
        try:
            yield
        finally:
            self._held.discard(held)

    async def _check(self, allowance: Allowance, wanted: _Held) -> None:
        limits = allowance.limits
        # Before what is stored is looked up: what is stored meanwhile counts twice rather than not at all.
        others = [held for held in self._held if held.holder == allowance.holder]
        names = await self._names(allowance)
        owners, owner = {owner_of(name) for name in names}, owner_of(wanted.workspace)
        if limits.workspaces is not None and owner not in owners:
            made = owners | {owner_of(held.workspace) for held in others} - {owner}
            _refuse_above("workspaces", limits.workspaces, len(made), 1)
        if limits.documents is None and limits.bytes is None:
            return
        stored = [await self._stored(name, fresh=name == wanted.workspace) for name in names]
        if limits.documents is not None:
            _refuse_above("documents", limits.documents, sum(each.documents for each in stored) + len(others), 1)
        if limits.bytes is not None:
            there = sum(each.bytes for each in stored) + sum(held.bytes for held in others)
            _refuse_above("bytes", limits.bytes, there, max(wanted.bytes, 1))

    async def _names(self, allowance: Allowance) -> Sequence[str]:
        names = await self._workspaces.names()
        return (
            names
            if allowance.workspaces is None
            else [name for name in names if owner_of(name) in allowance.workspaces]
        )

    async def _stored(self, workspace: str, *, fresh: bool) -> Stored:
        looked, known = self._known.get(workspace, (0.0, None))
        if known is None or fresh or time.monotonic() - looked > _REMEMBERED:
            try:
                known = await self._workspaces.stored(workspace)
            except ServiceUnavailable as error:
                # One store that cannot be read is no reason to keep everybody out of the others.
                known = known or Stored()
                _log.warning("The limits count workspace %s as it was last read: %s", workspace, error.message)
            self._known[workspace] = time.monotonic(), known
        return known


def weight(source: SourceText) -> int:
    """The bytes that a document counts for: its file's, or its text's when that is longer, and its metadata's."""
    text = len(source.text.encode(errors="replace"))
    return max(source.size or 0, text) + metadata_weight(source.metadata)


def metadata_weight(metadata: Mapping[str, Any]) -> int:
    """The bytes that metadata counts for."""
    return len(json.dumps(dict(metadata), default=str)) if metadata else 0


def _refuse_above(limit: str, most: int, there: int, more: int) -> None:
    if there + more > most:
        remedy = "Use a workspace that there is" if limit == "workspaces" else "Delete documents"
        raise Forbidden(
            f"The token's limit of {most} {limit} leaves no room: {there} are stored or on their way. {remedy}, or "
            f"have the limit raised (cragside token new --max-{limit}, RAG_LIMIT_{limit.upper()}).",
            limit=limit,
            most=most,
            stored=there,
        )
