import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "script",
    [
        "import cragside.store.engine",
        "import cragside.store.drafts",
        "import cragside.store.storages",
    ],
)
def test_lightrag_loads_without_unused_packages_which_others_can_still_load(script: str) -> None:
    script += (
        "\nimport sys"
        "\nassert not {'networkx', 'pypinyin', 'langchain_core', 'psutil', 'ascii_colors'} & set(sys.modules)"
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
    import cragside.store.lightrag
    assert loaded.result()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.attack("odd folders")
@pytest.mark.parametrize("own", [{}, {"PYTHON_DOTENV_DISABLED": "0"}])
def test_a_dotenv_file_of_the_working_directory_does_not_reach_the_environment(
    tmp_path: Path, own: dict[str, str]
) -> None:
    (tmp_path / ".env").write_text("LD_LIBRARY_PATH=/somewhere/else\nHTTPS_PROXY=http://127.0.0.1:1\n")
    script = """
import os
before = dict(os.environ)
import cragside.store.engine, cragside.store.drafts
import cragside.store.postgres.lightrag_tables
assert dict(os.environ) == before, dict(os.environ).items() - before.items()
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_DOTENV_DISABLED"} | own
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, cwd=tmp_path, env=environment)
