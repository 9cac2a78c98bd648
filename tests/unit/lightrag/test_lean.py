import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "script",
    [
        "import cragside.adapters.lightrag.engine.engine",
        "import cragside.adapters.lightrag.indexing.drafts",
        "import cragside.adapters.lightrag.storages.interface",
    ],
)
def test_lightrag_loads_without_unused_packages_which_others_can_still_load(script: str) -> None:
    script += (
        "\nimport sys; assert not {'networkx', 'pypinyin', 'langchain_core'} & set(sys.modules)"
        "\nimport networkx, pypinyin; assert networkx.Graph and pypinyin.lazy_pinyin"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_another_thread_loads_them_at_the_same_time() -> None:
    script = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
def other():
    while "lightrag" not in sys.modules:
        pass
    return import_module("networkx").Graph and import_module("pypinyin").lazy_pinyin
with ThreadPoolExecutor() as threads:
    loaded = threads.submit(other)
    import cragside.adapters.lightrag.lean
    assert loaded.result()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
