"""Leases, and the transactions that check them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any, Self

import asyncpg
from typing_extensions import override

from cragside.adapters.holders import is_gone
from cragside.adapters.lightrag.ledger.failures import LedgerError
from cragside.adapters.lightrag.ledger.leases import Lease, LeaseLost, StoreRemoved
from cragside.adapters.lightrag.ledger.postgres.failing import translating
from cragside.adapters.lightrag.ledger.postgres.listing import Listing
from cragside.adapters.lightrag.ledger.postgres.passages import PassageReads

# A row that others may be taking is locked, so that the answer holds until the commit.
_SEEN = """SELECT holder, expires > clock_timestamp(), epoch FROM crag.lease
    WHERE store = $1 AND name = $2 FOR UPDATE"""
_TAKE = """INSERT INTO crag.lease VALUES
    ($1, $2, nextval('crag.epoch'), $3, clock_timestamp() + make_interval(secs => $4))
    ON CONFLICT (store, name) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, expires = excluded.expires
    WHERE lease.epoch = $5 RETURNING epoch"""
_HELD = "store = $1 AND name = $2 AND holder = $3 AND epoch = $4"
_RENEW = f"UPDATE crag.lease SET expires = clock_timestamp() + make_interval(secs => $5) WHERE {_HELD} RETURNING 1"  # noqa: S608 (our own)
_RETURN = f"DELETE FROM crag.lease WHERE {_HELD}"  # noqa: S608 (our own)
# Whoever takes the lease waits until this transaction has ended.
_CHECK = f"SELECT 1 FROM crag.lease WHERE {_HELD} FOR SHARE"  # noqa: S608 (our own)


class Leasing(PassageReads):
    """Takes leases by the database's clock."""

    _leases: tuple[Lease, ...] = ()

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        try:
            async with self._store.note():
                row = await self._store.one(_SEEN, name)
                if row and row[0] != holder and row[1] and not is_gone(row[0]):
                    return None
                # Only what was seen is replaced: another may have taken the lease since.
                epoch = await self._store.value(_TAKE, name, holder, seconds, row[2] if row else None)
                return None if epoch is None else Lease(name, holder, epoch)
        except LedgerError as error:
            if isinstance(error.__cause__, asyncpg.ForeignKeyViolationError):
                raise StoreRemoved from error
            raise

    @override
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        return await self._of_heir(_RENEW, *_key(lease), seconds) is not None

    @override
    async def return_lease(self, lease: Lease) -> None:
        await self._of_heir(_RETURN, *_key(lease))

    @override
    def under(self, *leases: Lease) -> Self:
        other = copy(self)
        other._leases = (*self._leases, *leases)
        return other

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Listing]:
        async with self._store.transaction():
            await self._check_leases()
            listing = Listing(self._store)
            yield listing
            await listing.write()

    async def _of_heir(self, sql: str, *values: Any) -> Any:
        """A statement for a lease that this store had, whichever store has it now."""
        async with translating():
            return await self._store.database.value(sql, self._store.heir or self._store.number, *values)

    async def _check_leases(self) -> None:
        for lease in self._leases:
            if await self._store.one(_CHECK, *_key(lease)) is None:
                if (figures := self._store.database.figures) is not None:
                    figures.lease_lost()
                raise LeaseLost


def _key(lease: Lease) -> tuple[str, str, int]:
    return lease.name, lease.holder, lease.epoch
