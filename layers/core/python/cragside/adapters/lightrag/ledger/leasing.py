"""Leases, and the transactions that check them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Self

from typing_extensions import override

from cragside.adapters.lightrag.ledger.driver import HELD, Changed
from cragside.adapters.lightrag.ledger.leases import Lease, LeaseLost
from cragside.adapters.lightrag.ledger.passages import PassageReads

# Whoever takes the lease waits until this transaction has ended.
_CHECK = f"SELECT 1 FROM crag.lease WHERE {HELD} FOR SHARE"  # noqa: S608 (our own)


class Leasing(PassageReads):
    """Takes leases, and checks them in the transaction of each write."""

    _leases: tuple[Lease, ...] = ()

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        epoch = await self._driver.take_lease(name, holder, seconds)
        return None if epoch is None else Lease(name, holder, epoch)

    @override
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        return await self._driver.renew_lease(lease, seconds)

    @override
    async def return_lease(self, lease: Lease) -> None:
        await self._driver.return_lease(lease)

    @override
    def with_leases(self, *leases: Lease) -> Self:
        other = copy(self)
        other._leases = (*self._leases, *leases)
        return other

    @asynccontextmanager
    async def _transaction(self, *, keep: bool = False) -> AsyncIterator[Changed]:
        """A write: everything or nothing, and nothing once a lease is lost."""
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
