"""The leases of a ledger in memory."""

from copy import copy
from typing import Self

from typing_extensions import override

from cragside.adapters.holders import is_gone
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.leases import REMOVED, Lease, LeaseLost, StoreRemoved
from cragside.adapters.lightrag.ledger.memory.tables import MemoryTables
from cragside.ports.clock import SYSTEM_CLOCK, Clock


class MemoryLeasing(Ledger):
    """Takes leases. Whoever writes calls `_check_leases` first; no other task runs until the write is done."""

    _leases: tuple[Lease, ...] = ()
    _clock: Clock = SYSTEM_CLOCK

    def __init__(self, memory: MemoryTables, workspace: str) -> None:
        self._memory = memory
        self._workspace = workspace

    @override
    async def take_lease(self, name: str, holder: str, seconds: float) -> Lease | None:
        if self._memory.generation == REMOVED:
            raise StoreRemoved
        if held := self._memory.leases.get(name):
            lease, expires = held
            if lease.holder != holder and expires > self._clock.monotonic() and not is_gone(lease.holder):
                return None
        lease = Lease(name, holder, self._memory.next_number())
        self._memory.leases[name] = lease, self._clock.monotonic() + seconds
        return lease

    @override
    async def renew_lease(self, lease: Lease, seconds: float) -> bool:
        if not self._is_held(lease):
            return False
        self._memory.leases[lease.name] = lease, self._clock.monotonic() + seconds
        return True

    @override
    async def return_lease(self, lease: Lease) -> None:
        if self._is_held(lease):
            del self._memory.leases[lease.name]

    @override
    def under(self, *leases: Lease) -> Self:
        other = copy(self)
        other._leases = (*self._leases, *leases)
        return other

    def _check_leases(self) -> None:
        if not all(map(self._is_held, self._leases)):
            raise LeaseLost

    def _is_held(self, lease: Lease) -> bool:
        return lease.name in self._memory.leases and self._memory.leases[lease.name][0] == lease
