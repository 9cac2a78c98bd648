"""Shares a few places fairly among workspaces."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """Hands out `places`. With three or more, one workspace cannot take the last one.

    The waiting workspace with the fewest places is next, then the one whose last turn was longest ago. So a workspace
    waits for at most one turn, however many requests another one has.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._most = places - 1 if places > 2 else places
        self._taken = Counter[str]()
        # By workspace, in the order of turns.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, workspace: str, *, patience: float) -> AsyncIterator[None]:
        """Hold a place during the block. Raises `TimeoutError` if none is free within `patience` seconds."""
        await self.take(workspace, patience=patience)
        try:
            yield
        finally:
            self.give_back(workspace)

    async def take(self, workspace: str, *, patience: float) -> None:
        """Wait for a place; the caller must give it back. Raises `TimeoutError` as `turn` does."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(workspace, deque()).append(place)
        self._hand_out()
        try:
            async with asyncio.timeout(patience):
                await place
        except BaseException:
            if place.done() and not place.cancelled():  # handed out in the same moment
                self.give_back(workspace)
            else:
                self._leave(workspace, place)
            raise

    def give_back(self, workspace: str) -> None:
        """Give a place back."""
        self._free += 1
        self._taken[workspace] -= 1
        if not self._taken[workspace]:
            del self._taken[workspace]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and (able := [name for name in self._waiting if self._taken[name] < self._most]):
            workspace = min(able, key=lambda name: self._taken[name])
            line = self._waiting.pop(workspace)
            place = line.popleft()
            if line:  # the workspace is last now
                self._waiting[workspace] = line
            if not place.done():
                self._free -= 1
                self._taken[workspace] += 1
                place.set_result(None)

    def _leave(self, workspace: str, place: asyncio.Future[None]) -> None:
        line = self._waiting.get(workspace)
        if line is not None and place in line:
            line.remove(place)
            if not line:
                del self._waiting[workspace]
