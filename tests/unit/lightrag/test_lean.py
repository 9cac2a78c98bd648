import subprocess
import sys


def test_lightrag_is_loaded_without_what_is_not_used_and_others_can_load_that() -> None:
    script = (
        "import sys, cragside.adapters.lightrag.engine;"
        "assert not {'networkx', 'pypinyin'} & set(sys.modules);"
        "import networkx, pypinyin; assert networkx.Graph and pypinyin.lazy_pinyin"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
