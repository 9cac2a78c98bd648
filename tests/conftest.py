"""What holds for every test."""

import gc
import os
from collections import Counter

import pytest
from hypothesis import settings

from tools.attack_table import ATTACKS

pytest_plugins = ("tests.services.fixtures",)

# While modules are imported and items made, Python's threshold of 700 new objects searches for garbage all the time.
gc.set_threshold(20_000, 20, 20)

# Tests assert no timings: an example may take its time on a busy machine. CI tries the same examples for the same code;
# a run at a desk tries new ones each time.
settings.register_profile("cragside", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cragside")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count the attacks by family, before any test is deselected."""
    marks = (item.get_closest_marker("attack") for item in items)
    config.stash[ATTACKS] = Counter(mark.args[0] for mark in marks if mark)


def pytest_collection_finish() -> None:
    """Leave what collection made out of the search for garbage: a million objects of modules and test items."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three workers for two processors: many tests wait for a lease, a time-out or a server."""
    return (os.cpu_count() or 1) * 3 // 2 or 1
