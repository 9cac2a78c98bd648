"""Loads LightRAG's basic modules without two packages, which take longer to load than all of LightRAG.

Both serve what cragside does not use: a graph in a file, and the order of Chinese file names. LightRAG does without
them where they are not installed, as in the Lambda layer. Other code of the process can import them afterwards.
"""

import sys

_UNUSED = ("networkx", "pypinyin")


def _load() -> None:
    absent = [name for name in _UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: importing it raises ImportError
    try:
        import lightrag.utils  # noqa: F401
    finally:
        for name in absent:
            del sys.modules[name]


_load()
