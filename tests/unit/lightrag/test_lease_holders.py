"""Whether the holder of a lease is gone."""

import os

import pytest

from cragside.adapters.lightrag.ledger import leases
from cragside.adapters.lightrag.ledger.leases import is_gone, new_holder


def test_a_holder_before_a_restart_under_the_same_process_number_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_holder()
    assert not is_gone(before)
    monkeypatch.setattr(leases, "_PROCESS", "restarted")
    assert is_gone(before)


def test_of_another_machine_nobody_is_known_to_be_gone() -> None:
    machine, _, process, store = new_holder().split(" ")
    assert not is_gone(f"other-{machine} {os.getpid()} x {store}")
    assert not is_gone(f"other-{machine} 999999999 {process} {store}")


@pytest.mark.parametrize(
    "holder", ["", "a b", "a b c d", "{machine} -1 x y", "{machine} 1e9 x y", "{machine} " + "9" * 30 + " x y"]
)
def test_a_holder_that_nobody_wrote_is_waited_for_until_its_lease_expires(holder: str) -> None:
    machine = new_holder().split(" ")[0]
    assert not is_gone(holder.replace("{machine}", machine))
