"""The share that each of several users has in the connections to a server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Shares:
    """Lets one user have half of `most` connections, so that what is slow for one keeps no other one waiting."""

    def __init__(self, most: int) -> None:
        self.each = (most + 1) // 2
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, user: str, *, wait_seconds: float) -> AsyncIterator[None]:
        """The user may use one connection in this block. Raises `TimeoutError` when all of the share stay in use."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._free_of = loop, WeakValueDictionary()
        free = self._free_of.setdefault(user, asyncio.Semaphore(self.each))
        async with asyncio.timeout(wait_seconds):
            await free.acquire()
        try:
            yield
        finally:
            free.release()
