import subprocess
import sys


def test_lightrag_loads_without_unused_modules_which_others_can_still_load() -> None:
    script = (
        "import sys, cragside.adapters.lightrag.engine;"
        "assert not {'networkx', 'pypinyin'} & set(sys.modules);"
        "import networkx, pypinyin; assert networkx.Graph and pypinyin.lazy_pinyin"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
