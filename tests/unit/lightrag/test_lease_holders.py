"""A lease has a holder, or its holder has died."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cragside.databases import lease_holders
from cragside.databases.lease_holders import is_gone, new_holder
from cragside.store.backends.sqlite import SqliteBackend


def test_a_holder_from_before_a_reboot_is_dead_despite_an_equal_process_id(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_holder()
    assert not is_gone(before)
    monkeypatch.setattr(lease_holders, "_PROCESS", "restarted")
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


@pytest.mark.parametrize(
    ("holder", "expires", "free"),
    [
        ("other 1 x y", lambda now: now + 60, False),
        ("other 1 x y", lambda now: now + 3600, True),  # the holder's clock was an hour ahead
        ("other 1 x y", lambda _: 9e18, True),
        ("other 1 x y", lambda _: "soon", True),
        (b"\xff", lambda now: now + 60, False),
    ],
)
async def test_a_wrong_clock_or_a_damaged_row_does_not_block_a_lease(
    tmp_path: Path, holder: object, expires: Callable[[float], object], free: bool
) -> None:
    ledger = await SqliteBackend().open_ledger(tmp_path / "w", "w", search_text=str.lower)
    with sqlite3.connect(tmp_path / "w/store.sqlite3") as connection:
        row = ("graph", holder, expires(time.time()))
        connection.execute("INSERT INTO lease (name, holder, expires) VALUES (?, ?, ?)", row)
    connection.close()
    taken = await ledger.driver.take_lease("graph", new_holder(), 30)
    assert (taken is not None) is free
    ledger.driver.release()
