"""Runs equal work that is asked for at the same time once. Nothing is kept of a run that has ended."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from cragside.application.grading import Deadline
from cragside.domain.outcome import Step, Watch

Result = TypeVar("Result")
Work = Callable[[Watch], Coroutine[Any, Any, Result]]

# A run serves those whose time is about its own: it may have at least this share of theirs left, and at most that.
_LEAST_SHARE, _MOST_SHARE = 0.5, 1.02


class SingleFlight(Generic[Result]):
    """Shares runs among requests with the same key and event loop.

    Each run is a task of its own: it goes on while anyone waits for it, and is cancelled when the last one leaves.
    """

    def __init__(self) -> None:
        self._latest: dict[Hashable, _Run[Result]] = {}
        # The event loop holds no task by itself, and a run may be replaced before it has ended.
        self._under_way: set[_Run[Result]] = set()

    def __contains__(self, key: Hashable) -> bool:
        """Tell if a run with this key is under way."""
        return _here(key) in self._latest

    async def run(
        self, key: Hashable, work: Work[Result], *, deadline: Deadline, version: str | None, watch: Watch | None = None
    ) -> Result:
        """Return the result of a run under way, or else of a new one. Raises what the run raises.

        A run is shared only if it began at the same `version` of what it reads; None is never the same. `watch` is
        called with each step, at once with those that have ended.
        """
        key = _here(key)
        run = self._latest.get(key)
        if run is None or not run.serves(version, deadline):
            run = self._latest[key] = _Run(work, version, deadline)
            self._under_way.add(run)
            run.task.add_done_callback(partial(self._ended, key, run))
        return await run.result(watch)

    def _ended(self, key: Hashable, run: "_Run[Result]", task: "asyncio.Task[Result]") -> None:
        self._under_way.discard(run)
        if self._latest.get(key) is run:
            del self._latest[key]
        if not task.cancelled():
            task.exception()  # perhaps nobody waits for it any more


class _Run(Generic[Result]):
    def __init__(self, work: Work[Result], version: str | None, deadline: Deadline) -> None:
        self._version = version
        self._deadline = deadline
        self._waiting = 0
        self._steps: list[Step] = []
        self._watching: list[Watch] = []
        self.task = asyncio.create_task(work(self._note))

    def serves(self, version: str | None, deadline: Deadline) -> bool:
        if version is None or version != self._version or not self._waiting:
            return False
        left, wanted = self._deadline.remaining(), deadline.remaining()
        return wanted * _LEAST_SHARE <= left <= wanted * _MOST_SHARE

    async def result(self, watch: Watch | None) -> Result:
        if watch is not None:
            for step in self._steps:
                watch(step)
            self._watching.append(watch)
        self._waiting += 1
        try:
            await asyncio.wait({self.task})
            return self.task.result()
        finally:
            self._waiting -= 1
            if watch is not None:
                self._watching.remove(watch)
            if not self._waiting and not self.task.done():
                self.task.cancel()
                await asyncio.wait({self.task})

    def _note(self, step: Step) -> None:
        self._steps.append(step)
        for watch in self._watching:
            watch(step)


def _here(key: Hashable) -> Hashable:
    return asyncio.get_running_loop(), key
