"""Leases in a store's file, and the transactions that check them."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from sqlite3 import Connection
from typing import Self

from typing_extensions import override

from cragside.adapters.holders import is_gone
from cragside.adapters.lightrag.ledger.leases import Lease, LeaseLost, StoreRemoved
from cragside.adapters.lightrag.ledger.sqlite.passages import PassageReads
from cragside.ports.clock import SYSTEM_CLOCK, Clock

# Longer than any lease.
_LONGEST_SECONDS = 120
_HELD = "epoch = ? AND name = ? AND holder = ?"


class Leasing(PassageReads):
    """Takes leases. Each taking is a row of its own, and its number is the epoch; returning deletes the row."""

    _leases: tuple[Lease, ...] = ()
    _clock: Clock = SYSTEM_CLOCK

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        await self._database.turn()
        now = self._clock.time()
        with self._database.note() as connection:
            # Whoever removes a workspace holds its leases until the file is away.
            if self._database.is_removed():
                raise StoreRemoved
            row = connection.execute("SELECT holder, expires FROM lease WHERE name = ?", (name,)).fetchone()
            if row and row[0] != holder and _is_current(row[0], row[1], now):
                return None
            put = "INSERT OR REPLACE INTO lease (name, holder, expires) VALUES (?, ?, ?)"
            return Lease(name, holder, connection.execute(put, (name, holder, now + seconds)).lastrowid or 0)

    @override
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        if not await self._database.turn():
            return True  # nobody else can take it either while somebody writes for so long
        with self._database.note() as connection:
            expires = self._clock.time() + seconds
            renewed = connection.execute(f"UPDATE lease SET expires = ? WHERE {_HELD}", (expires, *_key(lease)))  # noqa: S608 (our own)
            return renewed.rowcount > 0

    @override
    async def return_lease(self, lease: Lease) -> None:
        await self._database.turn()
        with self._database.note() as connection:
            connection.execute(f"DELETE FROM lease WHERE {_HELD}", _key(lease))  # noqa: S608 (our own)

    @override
    def under(self, *leases: Lease) -> Self:
        other = copy(self)
        other._leases = (*self._leases, *leases)
        return other

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._database.transaction() as connection:
            self._check_leases(connection)
            yield connection

    def _check_leases(self, connection: Connection) -> None:
        for lease in self._leases:
            if not connection.execute(f"SELECT 1 FROM lease WHERE {_HELD}", _key(lease)).fetchone():  # noqa: S608 (our own)
                raise LeaseLost


def _is_current(holder: object, expires: object, now: float) -> bool:
    """Whether a lease still runs. One that a wrong clock or a damaged row extends far into the future does not."""
    runs = isinstance(expires, float | int) and now < expires <= now + _LONGEST_SECONDS
    return runs and not is_gone(str(holder))


def _key(lease: Lease) -> tuple[int, str, str]:
    return lease.epoch, lease.name, lease.holder
