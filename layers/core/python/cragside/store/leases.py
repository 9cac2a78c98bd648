"""Takes the leases of one open store, waits for them, and renews them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from cragside.databases.lease_holders import new_holder
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.store.driver import Driver
from cragside.store.errors import Lease, LedgerError

# The leases of the graph, and of the catalogue with the passages. Whoever needs both takes that of the graph first.
GRAPH, DOCUMENTS = "graph", "documents"
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.002, 0.05

logger = logging.getLogger("cragside")


class Leases:
    """Takes leases of a store, and renews them until they are returned."""

    def __init__(self, driver: Driver, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._driver = driver
        self._seconds = seconds
        self._clock = clock
        self._holder = new_holder()
        self._held: dict[str, Lease] = {}
        # Locks that nobody holds or waits for are forgotten: there is a lease for each part.
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[Lease]:
        """Hold a lease. The tasks of this process get it in the order in which they ask."""
        async with self._turn(name):
            lease = await self.take(name)
            try:
                yield lease
            finally:
                await self.give(name)

    @asynccontextmanager
    async def held_if_free(self, name: str) -> AsyncIterator[Lease | None]:
        """Hold a lease, or give None at once if somebody else holds it."""
        turn = self._turn(name)
        if turn.locked():
            yield None
            return
        async with turn:
            lease = await self.take_if_free(name)
            try:
                yield lease
            finally:
                if lease is not None:
                    await self.give(name)

    async def take(self, name: str) -> Lease:
        """Wait for a lease and keep it until it is given back."""
        pause = _FIRST_PAUSE_SECONDS
        while (lease := await self.take_if_free(name)) is None:
            await self._clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        return lease

    async def take_if_free(self, name: str) -> Lease | None:
        """Take a lease and keep it until it is given back. None if anybody holds it, another task of this store too."""
        if name in self._held:
            return None
        lease = await self._driver.take_lease(name, self._holder, self._seconds)
        if lease is not None:
            self._held[name] = lease
            if self._renewing is None or self._renewing.done():
                self._renewing = asyncio.create_task(self._renew())
        return lease

    async def give(self, name: str) -> None:
        """Return a lease if it is held."""
        if lease := self._held.pop(name, None):
            # A task that is cancelled returns its leases all the same.
            await asyncio.shield(self._returned(lease))

    def of(self, name: str) -> tuple[Lease, ...]:
        """Return the lease of this name, if it is held."""
        return (self._held[name],) if name in self._held else ()

    async def close(self) -> None:
        """Return all leases."""
        for name in list(self._held):
            await self.give(name)
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])

    def _turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())

    async def _returned(self, lease: Lease) -> None:
        # What was written is written: others get the lease when it expires.
        try:
            await self._driver.return_lease(lease)
        except LedgerError as error:
            logger.warning("The lease %s could not be returned: %s", lease.name, error.reason)

    async def _renew(self) -> None:
        while self._held:
            await self._clock.sleep(self._seconds / 3)
            for lease in list(self._held.values()):
                try:
                    if not await self._driver.renew_lease(lease, self._seconds) and lease in self._held.values():
                        logger.warning("Another process has taken over the lease %s", lease.name)
                except LedgerError as error:
                    logger.warning("The lease %s could not be renewed: %s", lease.name, error.reason)
