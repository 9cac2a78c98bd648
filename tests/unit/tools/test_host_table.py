"""The table of hosts has its rows after a run."""

import pytest

from tools import host_table


def test_a_host_that_this_machine_lacks_keeps_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_table, "rows_on_page", lambda: [["lacking", "2"], ["a", "1"]])
    assert host_table.with_skipped([{"host": "new", "version": "1"}, {"host": "a", "version": "3"}]) == [
        {"host": "lacking", "version": "2"},
        {"host": "a", "version": "3"},
        {"host": "new", "version": "1"},
    ]
