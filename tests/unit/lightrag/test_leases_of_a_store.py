"""The leases of one open store."""

import asyncio
from pathlib import Path

from cragside.adapters.holders import new_holder
from cragside.adapters.lightrag.backends.memory import MemoryBackend
from cragside.adapters.lightrag.leases import Leases


async def test_two_tasks_of_one_store_wait_for_each_other(tmp_path: Path) -> None:
    ledger = await MemoryBackend().open_ledger(tmp_path, "w", search_text=str.lower)
    leases = Leases(ledger, 60)
    first = await leases.take("part")
    assert await leases.take_if_free("part") is None
    second = asyncio.create_task(leases.take("part"))
    await asyncio.sleep(0.01)
    assert not second.done()
    assert leases.of("part") == (first,)
    await leases.give("part")
    assert (await second).epoch > first.epoch
    await leases.close()
    assert await ledger.take_lease("part", new_holder(), 60) is not None
    ledger.release()
