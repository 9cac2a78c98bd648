"""Stores that are being built to take the place of others."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cragside.store.backends.interface import Backend
from cragside.store.leases import Leases
from cragside.store.ledger.leases import StoreRemoved

if TYPE_CHECKING:
    from cragside.store.ledger.ledger import Ledger


@asynccontextmanager
async def being_built(
    backend: Backend, folder: Path, open_ledger: "Callable[[], Awaitable[Ledger]]", *, lease: str, seconds: float
) -> AsyncIterator["Ledger | None"]:
    """The ledger of a store that nobody sweeps away meanwhile; None if somebody else holds the lease.

    In the end, the store is removed from its folder. Raises as `open_ledger` does.
    """
    while True:
        ledger = await open_ledger()
        leases, mine = Leases(ledger, seconds), False
        try:
            mine = await leases.take_if_free(lease) is not None
            yield ledger if mine else None
            return
        except StoreRemoved:
            if mine:
                raise
            # A sweep was faster than the lease.
        finally:
            await leases.close()
            ledger.release()
            if mine:
                await backend.remove(folder)
