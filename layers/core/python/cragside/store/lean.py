"""Import the parts of LightRAG that cragside uses, without those that it does not need. All modules import from here.

These packages serve a graph in a file, the order of Chinese file names and LightRAG's own splitting of texts, none of
which cragside uses. They take more time and memory to load than all of LightRAG, which does without them where they
are not installed. Other code of the process can still import them.
"""

import logging
import sys
import threading
from importlib.abc import MetaPathFinder

from cragside.store.without_dotenv import without_dotenv

_UNUSED = {"networkx", "pypinyin", "langchain_core", "langchain_text_splitters"}


class _Absent(MetaPathFinder):
    """Hides packages from the thread that loads LightRAG. Others may import them at the same time."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname in _UNUSED and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{fullname} is not loaded with LightRAG", name=fullname)


_absent = _Absent()
sys.meta_path.insert(0, _absent)
try:
    with without_dotenv():
        from lightrag import LightRAG, QueryParam, utils
        from lightrag.base import (
            BaseGraphStorage,
            BaseKVStorage,
            BaseVectorStorage,
            DocStatusStorage,
            StoragesStatus,
        )
        from lightrag.constants import GRAPH_FIELD_SEP
        from lightrag.kg import STORAGE_ENV_REQUIREMENTS, STORAGE_IMPLEMENTATIONS, STORAGES
        from lightrag.operate import merge_nodes_and_edges
        from lightrag.prompt import PROMPTS
        from lightrag.utils import EmbeddingFunc, Tokenizer
finally:
    sys.meta_path.remove(_absent)

# It reports each step of a query. Writing these reports takes longer than the steps.
utils.logger.setLevel(logging.ERROR)

__all__ = [
    "GRAPH_FIELD_SEP",
    "PROMPTS",
    "STORAGES",
    "STORAGE_ENV_REQUIREMENTS",
    "STORAGE_IMPLEMENTATIONS",
    "BaseGraphStorage",
    "BaseKVStorage",
    "BaseVectorStorage",
    "DocStatusStorage",
    "EmbeddingFunc",
    "LightRAG",
    "QueryParam",
    "StoragesStatus",
    "Tokenizer",
    "merge_nodes_and_edges",
    "utils",
]
