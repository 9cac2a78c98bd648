"""Import the parts of LightRAG that cragside uses. All modules import them from here.

LightRAG's modules put what a `.env` of the working directory says into the environment, where it would reach every
library and child process. They are loaded without that: cragside reads its settings itself, and checks whose file it
is.

Left out are the packages that serve a graph in a file, the order of Chinese file names, LightRAG's own splitting of
texts, its locks between processes and its coloured log. They take more time and memory to load than all of LightRAG,
which does without them where they are not installed. Other code of the process can still import them."""

import logging
import os
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.abc import MetaPathFinder
from itertools import chain
from typing import Any

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
        from lightrag import LightRAG, QueryParam, operate, utils
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
finally:
    sys.meta_path.remove(_absent)

# It reports each step of a query. Writing these reports takes longer than the steps.
utils.logger.setLevel(logging.ERROR)

# As many different fields as a few parts have: their names, types and sentences come again and again.
_KEPT_FIELDS = 2048


def split_by(content: str | None, markers: list[str]) -> list[str]:
    """Split a text at any of the markers, as LightRAG does, without a new pattern for each text."""
    if not markers:
        return [content]  # type: ignore[list-item]
    text = content or ""
    parts = text.split(markers[0]) if len(markers) == 1 else re.split("|".join(map(re.escape, markers)), text)
    return [part for each in parts if (part := each.strip())]


def merged_ids(known: Iterable[str] | None, new: Iterable[str] | None) -> list[str]:
    """Put lists of ids together, each id once, as LightRAG does. It looks for joined ids in each of them."""
    ids = dict.fromkeys(chain(known or (), new or ()))
    joined = "\n".join(ids)
    if GRAPH_FIELD_SEP in joined or joined.split() != list(ids):
        return _merge_joined_ids(ids, ())
    return list(ids)


async def _written(operation: Callable[[], Awaitable[object]], *_: Any, **__: Any) -> None:
    # A draft notes a row in memory: there is nothing to wait for and nothing to try again.
    await operation()


# These take most of the time of a merge, so they do the same in less.
_merge_joined_ids: Callable[..., list[str]] = utils.merge_source_ids
normalized_field = lru_cache(_KEPT_FIELDS)(utils.sanitize_and_normalize_extracted_text)
for _module in (utils, operate):
    _module.split_string_by_multi_markers = split_by
    _module.merge_source_ids = merged_ids
    _module.safe_vdb_operation_with_exception = _written
    _module.sanitize_and_normalize_extracted_text = normalized_field
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
    "merged_ids",
    "normalized_field",
    "perform_search",
    "split_by",
    "truncate",
    "utils",
    "validate_rag_query",
]
