"""Packages that a library does without are hidden while it is loaded, from the thread that loads it alone."""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

from cragside.store.imports import loading


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Import a package anew, and return its name."""
    (tmp_path / "heavy_package.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    def run() -> str:
        monkeypatch.delitem(sys.modules, "heavy_package", raising=False)
        return import_module("heavy_package").__name__

    return run


def test_a_package_is_hidden_while_a_library_is_loaded_and_found_afterwards(imported: Callable[[], str]) -> None:
    with (
        loading("Library", without={"heavy_package"}),
        pytest.raises(ModuleNotFoundError, match="heavy_package is not loaded with Library"),
    ):
        imported()
    assert imported() == "heavy_package"


def test_another_thread_finds_it_meanwhile(imported: Callable[[], str]) -> None:
    with loading("Library", without={"heavy_package"}), ThreadPoolExecutor(1) as others:
        assert others.submit(imported).result() == "heavy_package"


def test_a_library_that_fails_to_load_leaves_nothing_hidden(imported: Callable[[], str]) -> None:
    before = list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), loading("Library", without={"heavy_package"}):
        raise ZeroDivisionError
    assert sys.meta_path == before
    assert imported() == "heavy_package"
