"""Import the parts of LightRAG that cragside uses. All modules import them from here.

LightRAG's modules put what a `.env` of the working directory says into the environment, where it would reach every
library and child process. They are loaded without that: cragside reads its settings itself, and checks whose file it
is.

Left out are the packages that serve a graph in a file, the order of Chinese file names, LightRAG's own splitting of
texts, its locks between processes and its coloured log. They take more time and memory to load than all of LightRAG,
which does without them where they are not installed. Other code of the process can still import them."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from cragside.store.imports import loading

# python-dotenv's own switch.
_NO_DOTENV = "PYTHON_DOTENV_DISABLED"


@contextmanager
def without_dotenv() -> Iterator[None]:
    """Have modules that are imported in this block read no `.env`."""
    before = os.environ.get(_NO_DOTENV)
    os.environ[_NO_DOTENV] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_DOTENV]
        else:
            os.environ[_NO_DOTENV] = before


_UNUSED = {"networkx", "pypinyin", "langchain_core", "langchain_text_splitters", "psutil", "ascii_colors"}

with without_dotenv(), loading("LightRAG", without=_UNUSED):
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
    from lightrag.operate import (
        _apply_token_truncation,
        _merge_all_chunks,
        _perform_kg_search,
        collect_kg_merge_candidates,
        merge_nodes_and_edges,
    )
    from lightrag.prompt import PROMPTS
    from lightrag.query_validation import validate_rag_query
    from lightrag.utils import EmbeddingFunc, Tokenizer

# It reports each step of a query. Writing these reports takes longer than the steps.
utils.logger.setLevel(logging.ERROR)

perform_search, truncate, merge_passages = _perform_kg_search, _apply_token_truncation, _merge_all_chunks

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
    "collect_kg_merge_candidates",
    "merge_nodes_and_edges",
    "merge_passages",
    "perform_search",
    "truncate",
    "utils",
    "validate_rag_query",
]
