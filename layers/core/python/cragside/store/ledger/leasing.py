"""Leases, and the transactions that check them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Self

from cragside.store.ledger.driver import HELD, Changed
from cragside.store.ledger.leases import Lease, LeaseLost
from cragside.store.ledger.passages import PassageReads

# Whoever takes the lease waits until this transaction has ended.
_CHECK = f"SELECT 1 FROM crag.lease WHERE {HELD} FOR SHARE"  # noqa: S608 (our own)


class Leasing(PassageReads):
    """Takes leases, and checks them in the transaction of each write."""

    _leases: tuple[Lease, ...] = ()

    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        """Take the lease of this name for some seconds, with a new epoch. None while another living holder has it.

        `is_gone` says which holders no longer live.
        """
        epoch = await self._driver.take_lease(name, holder, seconds)
        return None if epoch is None else Lease(name, holder, epoch)

    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        """Have a lease last for some seconds from now. False if it was taken by another since."""
        return await self._driver.renew_lease(lease, seconds)

    async def return_lease(self, lease: Lease) -> None:
        """Let others take a lease from now on. Does nothing if it was taken by another since."""
        await self._driver.return_lease(lease)

    def with_leases(self, *leases: Lease) -> Self:
        """Return this ledger for a holder of leases: its writes raise `LeaseLost` once another has taken one.

        A write checks the leases in its own transaction. Leases that have expired but were not taken are good.
        """
        other = copy(self)
        other._leases = (*self._leases, *leases)
        return other

    @asynccontextmanager
    async def _transaction(self, *, keep: bool = False) -> AsyncIterator[Changed]:
        """Write everything in the block or nothing, and nothing once a lease is lost."""
        changed = Changed()
        async with self._driver.transaction():
            await self._check_leases()
            yield changed
            await self._driver.show(changed)
        if keep:
            await self._driver.keep()

    async def _check_leases(self) -> None:
        for lease in self._leases:
            if await self._driver.one(_CHECK, lease.name, lease.holder, lease.epoch) is None:
                self._driver.note_lost_lease()
                raise LeaseLost
