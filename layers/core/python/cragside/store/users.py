"""Knows which task uses which workspace, so that no store is closed while it is in use."""

import asyncio
from typing import Any

from cragside.ports.clock import SYSTEM_CLOCK, Clock

# No request takes longer. A task that has not asked for so long has left its workspace.
_LONGEST_SECONDS = 900
_LOOK_SECONDS = 0.5


class StoreUsers:
    """Notes that a task uses the workspace that it asked for last, until it ends or asks for another one."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._of: dict[asyncio.Task[Any], str] = {}
        self._users: dict[str, dict[asyncio.Task[Any], float]] = {}
        self._freed = asyncio.Event()

    def add(self, workspace: str) -> None:
        """Note that the current task uses this workspace from now on."""
        task = asyncio.current_task()
        if task is None:
            return
        former = self._of.get(task)
        if former is None:
            task.add_done_callback(self.remove)
        elif former != workspace:
            self._forget(task, former)
        self._of[task] = workspace
        self._users.setdefault(workspace, {})[task] = self._clock.monotonic()

    def remove(self, task: asyncio.Task[Any] | None = None) -> None:
        """Note that the task, or the current one, uses no workspace any more."""
        task = task or asyncio.current_task()
        if task is not None and (workspace := self._of.pop(task, None)) is not None:
            task.remove_done_callback(self.remove)
            self._forget(task, workspace)

    def any(self, workspace: str) -> bool:
        """Return True if a task uses the workspace."""
        latest = max(self._users.get(workspace, {}).values(), default=None)
        return latest is not None and self._clock.monotonic() - latest < _LONGEST_SECONDS

    async def change(self) -> None:
        """Wait until a task has left its workspace, or for a moment."""
        self._freed.clear()
        await self._clock.wait_for(self._freed, _LOOK_SECONDS)

    def _forget(self, task: asyncio.Task[Any], workspace: str) -> None:
        users = self._users[workspace]
        del users[task]
        if not users:
            del self._users[workspace]
        self._freed.set()
