"""Leases of a ledger: one holder at a time, and no write of a holder that was overtaken."""

import multiprocessing
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cragside.databases.lease_holders import is_gone, new_holder
from cragside.domain.errors import ServiceUnavailable
from cragside.store.backends.interface import Backend
from cragside.store.driver import Always, GraphChange
from cragside.store.errors import LeaseLost
from cragside.store.ledger import Ledger


@pytest.fixture
async def ledger(backend: Backend, tmp_path: Path) -> AsyncIterator[Ledger]:
    ledger = await backend.open_ledger(tmp_path / "w", "w", search_text=str.lower)
    yield ledger
    ledger.driver.release()


async def test_a_lease_has_one_holder_until_it_is_returned(ledger: Ledger) -> None:
    one, other = new_holder(), new_holder()
    lease = await ledger.driver.take_lease("graph", one, 60)
    assert lease is not None
    assert await ledger.driver.take_lease("graph", other, 60) is None
    assert await ledger.driver.take_lease("documents", other, 60) is not None
    await ledger.driver.return_lease(lease)
    assert await ledger.driver.take_lease("graph", other, 60) is not None


async def test_a_holder_may_take_its_lease_again_under_a_new_epoch(ledger: Ledger) -> None:
    holder = new_holder()
    first = await ledger.driver.take_lease("graph", holder, 60)
    second = await ledger.driver.take_lease("graph", holder, 60)
    assert first is not None
    assert second is not None
    assert second.epoch > first.epoch
    with pytest.raises(LeaseLost):
        await ledger.with_leases(first).apply(GraphChange(), Always(), "m")
    await ledger.with_leases(second).apply(GraphChange(), Always(), "m")


async def test_epochs_grow_also_after_leases_were_returned(ledger: Ledger) -> None:
    epochs = []
    for _ in range(3):
        lease = await ledger.driver.take_lease("graph", new_holder(), 60)
        assert lease is not None
        await ledger.driver.return_lease(lease)
        epochs.append(lease.epoch)
    assert epochs == sorted(set(epochs))


async def test_a_lease_that_has_expired_can_be_taken_and_is_good_until_then(ledger: Ledger) -> None:
    late = await ledger.driver.take_lease("graph", new_holder(), -1)
    assert late is not None
    await ledger.with_leases(late).apply(GraphChange(), Always(), "m")
    taken = await ledger.driver.take_lease("graph", new_holder(), 60)
    assert taken is not None
    assert taken.epoch > late.epoch


async def test_a_lease_that_is_renewed_cannot_be_taken(ledger: Ledger) -> None:
    lease = await ledger.driver.take_lease("graph", new_holder(), -1)
    assert lease is not None
    assert await ledger.driver.renew_lease(lease, 60)
    assert await ledger.driver.take_lease("graph", new_holder(), 60) is None


@pytest.mark.parametrize("returned", [False, True])
async def test_a_holder_with_an_old_epoch_can_neither_write_nor_renew_nor_release(
    backend: Backend, ledger: Ledger, tmp_path: Path, returned: bool
) -> None:
    lease = await ledger.driver.take_lease("graph", new_holder(), -1)
    taken = await ledger.driver.take_lease("graph", new_holder(), 60)
    documents = await ledger.driver.take_lease("documents", new_holder(), 60)
    assert lease is not None
    assert taken is not None
    assert documents is not None
    if returned:
        await ledger.driver.return_lease(taken)
    state = await ledger.driver.state()
    with pytest.raises(LeaseLost) as failure:
        await ledger.with_leases(documents, lease).apply(GraphChange(), Always(), "m")
    assert isinstance(failure.value, ServiceUnavailable)
    assert failure.value.retryable
    fresh = await backend.open_ledger(tmp_path / "fresh", "w", search_text=str.lower)
    await fresh.apply(GraphChange(), Always(), "other")
    with pytest.raises(LeaseLost):
        await ledger.with_leases(lease).replace_by(fresh)
    fresh.driver.release()
    assert await ledger.driver.embedding_model() is None
    assert await ledger.driver.state() == state
    assert not await ledger.driver.renew_lease(lease, 60)
    await ledger.driver.return_lease(lease)
    assert (await ledger.driver.take_lease("graph", new_holder(), 60) is not None) == returned


async def test_leases_are_no_content(ledger: Ledger) -> None:
    state = await ledger.driver.state()
    lease = await ledger.driver.take_lease("graph", new_holder(), 60)
    assert lease is not None
    await ledger.driver.renew_lease(lease, 60)
    await ledger.driver.return_lease(lease)
    assert await ledger.driver.state() == state


async def test_a_lease_of_a_process_that_has_ended_can_be_taken_at_once(ledger: Ledger) -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        holder = pool.apply(new_holder)
        assert not is_gone(holder)
        assert await ledger.driver.take_lease("graph", holder, 60) is not None
        assert await ledger.driver.take_lease("graph", new_holder(), 60) is None
    pool.join()
    assert is_gone(holder)
    assert await ledger.driver.take_lease("graph", new_holder(), 60) is not None
