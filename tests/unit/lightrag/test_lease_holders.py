"""Whether the holder of a lease is gone."""

import os

import pytest

from cragside.adapters.lightrag.ledger import leases
from cragside.adapters.lightrag.ledger.leases import is_gone, new_holder


def test_a_holder_from_before_a_reboot_is_dead_despite_an_equal_process_id(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_holder()
    assert not is_gone(before)
    monkeypatch.setattr(leases, "_PROCESS", "restarted")
    assert is_gone(before)


def test_a_holder_on_another_machine_is_never_assumed_dead() -> None:
    machine, _, process, store = new_holder().split(" ")
    assert not is_gone(f"other-{machine} {os.getpid()} x {store}")
    assert not is_gone(f"other-{machine} 999999999 {process} {store}")


@pytest.mark.parametrize(
    "holder", ["", "a b", "a b c d", "{machine} -1 x y", "{machine} 1e9 x y", "{machine} " + "9" * 30 + " x y"]
)
def test_a_malformed_holder_keeps_its_lease_until_it_expires(holder: str) -> None:
    machine = new_holder().split(" ")[0]
    assert not is_gone(holder.replace("{machine}", machine))
