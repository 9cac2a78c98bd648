"""Keeps stores open: each is opened once, and closed when others need its place."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from cragside.domain.errors import ServiceUnavailable
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.users import StoreUsers

if TYPE_CHECKING:
    from cragside.store.store import Store

    Open = Callable[[], Coroutine[Any, Any, Store]]

# How long those who need a place wait for a store to close.
_CLOSING_SECONDS = 1.0


class StorePool:
    """Keeps at most `most` stores open. Each takes descriptors, and memory for its vectors.

    If all are in use, a caller waits up to `patience` seconds for one.
    """

    def __init__(self, *, most: int, patience: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._most = most
        self._patience = patience
        self._open: dict[str, asyncio.Task[Store]] = {}
        # The workspaces that have a place, least recently asked for first. The others wait for one.
        self._admitted: dict[str, None] = {}
        self._users = StoreUsers(clock)
        self._closing: set[asyncio.Task[None]] = set()
        self._door = asyncio.Lock()
        self._closed = False

    def use(self, workspace: str) -> None:
        """Note that the current task uses the workspace, until it ends or uses another one."""
        self._users.add(workspace)
        if workspace in self._admitted:  # now the last one
            del self._admitted[workspace]
            self._admitted[workspace] = None

    def leave(self) -> None:
        """Note that the current task uses no workspace any more."""
        self._users.remove()

    def opening(self, workspace: str) -> "asyncio.Task[Store] | None":
        """Return the store that is open, or is being opened."""
        return self._open.get(workspace)

    def start(self, workspace: str, open_store: "Open") -> "asyncio.Task[Store]":
        """Open a store when there is a place for it. A request that gives up leaves the opening to go on.

        Raises `ServiceUnavailable` once the pool is closed.
        """
        if self._closed:
            raise ServiceUnavailable("knowledge_base", "The stores are closed.")
        task = self._open[workspace] = asyncio.create_task(self._in_turn(workspace, open_store))
        task.add_done_callback(partial(self._forget_failure, workspace))
        return task

    async def drop(self, workspace: str) -> None:
        """Close a store, so that the next request opens it anew."""
        if opened := self._open.pop(workspace, None):
            self._admitted.pop(workspace, None)
            await (await opened).close()

    async def close(self) -> None:
        """Close every store. One that fails to open or to close does not keep the others open."""
        self._closed = True
        self._admitted.clear()
        openings = [self._open.popitem()[1] for _ in range(len(self._open))]
        opened = await asyncio.gather(*openings, return_exceptions=True)
        closing: list[Awaitable[None]] = [store.close() for store in opened if not isinstance(store, BaseException)]
        ended = await asyncio.gather(*closing, *self._closing, return_exceptions=True)
        failures = [failure for failure in ended if failure is not None]
        if failures:
            raise failures[0]

    async def _in_turn(self, workspace: str, open_store: "Open") -> "Store":
        """Open a store once it has a place. Workspaces get places in the order in which they asked."""
        if workspace in self._admitted:
            return await open_store()
        try:
            async with asyncio.timeout(self._patience), self._door:
                while workspace not in self._admitted:
                    if len(self._admitted) < self._most or await self._closed_one():
                        self._admitted[workspace] = None
                    else:
                        await self._users.change()
        except TimeoutError:
            raise ServiceUnavailable(
                "knowledge_base", "Too many workspaces are in use at the moment. Try again in a few seconds."
            ) from None
        return await open_store()

    async def _closed_one(self) -> bool:
        """Close the store that nobody has asked for in the longest time. False when all are in use.

        A store that gives disk space back takes long to close, so any other is closed rather than it.
        """
        idle = [workspace for workspace in self._admitted if self._is_idle(workspace)]
        if not idle:
            return False
        quick = (workspace for workspace in idle if not self._open[workspace].result().ledger.is_tidying)
        workspace = next(quick, idle[0])
        closing = asyncio.create_task(self._open.pop(workspace).result().close())
        del self._admitted[workspace]
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        # Whoever waits may give up. The store is closed all the same, which takes minutes if it makes an index.
        await asyncio.wait([closing], timeout=None if len(self._closing) > self._most else _CLOSING_SECONDS)
        return True

    def _is_idle(self, workspace: str) -> bool:
        opening = self._open[workspace]
        opened = opening.done() and not opening.cancelled() and opening.exception() is None
        return opened and not self._users.any(workspace) and opening.result().workers == 0

    def _forget_failure(self, workspace: str, opening: "asyncio.Task[Store]") -> None:
        if opening.cancelled() or opening.exception():
            self._open.pop(workspace, None)
            self._admitted.pop(workspace, None)
