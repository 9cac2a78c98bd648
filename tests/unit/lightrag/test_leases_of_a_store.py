"""The leases of one open store."""

import asyncio
from pathlib import Path

from cragside.databases.lease_holders import new_holder
from cragside.store.backends.sqlite import SqliteBackend
from cragside.store.leases import Leases
from tests.clocks import MovedClock


async def test_two_tasks_of_one_store_wait_for_each_other(tmp_path: Path) -> None:
    ledger = await SqliteBackend().open_ledger(tmp_path, "w", search_text=str.lower)
    leases = Leases(ledger.driver, 60)
    first = await leases.take("part")
    assert await leases.take_if_free("part") is None
    second = asyncio.create_task(leases.take("part"))
    await asyncio.sleep(0.01)
    assert not second.done()
    assert leases.of("part") == (first,)
    await leases.give("part")
    assert (await second).epoch > first.epoch
    await leases.close()
    assert await ledger.driver.take_lease("part", new_holder(), 60) is not None
    ledger.driver.release()


async def test_a_lease_is_renewed_in_time_as_long_as_it_is_held(tmp_path: Path) -> None:
    clock = MovedClock()
    ledger = await SqliteBackend(clock=clock).open_ledger(tmp_path, "w", search_text=str.lower)
    leases = Leases(ledger.driver, 30, clock)
    await leases.take("part")
    async with asyncio.timeout(30):
        for renewed in range(1, 6):
            while len(clock.slept) < renewed:
                await asyncio.sleep(0.001)
            clock.move(20)
            assert await ledger.driver.take_lease("part", new_holder(), 30) is None
    await leases.close()
    ledger.driver.release()
