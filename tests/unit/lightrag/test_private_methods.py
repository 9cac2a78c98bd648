"""Private methods of LightRAG that drafts and engines use. When this fails after an upgrade, read each method anew."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from lightrag import LightRAG
from lightrag.operate import _apply_token_truncation, _merge_all_chunks, _perform_kg_search, merge_nodes_and_edges

PURGED = {"candidate_entities", "candidate_relations", "rebuild_policy", "pipeline_status", "pipeline_status_lock"}
MERGED = {
    "pipeline_status",
    "pipeline_status_lock",
    "llm_response_cache",
    "entity_chunks_storage",
    "relation_chunks_storage",
}


@pytest.mark.parametrize(
    ("owner", "name", "positional", "named", "asynchronous"),
    [
        (LightRAG, "_process_extract_entities", 2, set(), True),
        (LightRAG, "_purge_derived_kg_contributions", 3, PURGED, True),
        (LightRAG, "_build_global_config", 1, set(), False),
        (LightRAG, "_wrap_llm_role_func", 6, set(), False),
    ],
)
def test_lightrags_private_methods_have_the_expected_parameters(
    owner: type, name: str, positional: int, named: set[str], asynchronous: bool
) -> None:
    method = getattr(owner, name, None)
    assert method is not None, f"LightRAG has no {name} any more: drafts.py and engine.py call it"
    holds(method, positional, named, asynchronous)


def test_merging_has_the_expected_parameters() -> None:
    holds(merge_nodes_and_edges, 5, MERGED, asynchronous=True)


CHOSEN = {"query", "knowledge_graph_inst", "text_chunks_db", "query_param", "chunks_vdb", "query_embedding"}


@pytest.mark.parametrize(
    ("step", "positional", "named"),
    [(_perform_kg_search, 9, set()), (_apply_token_truncation, 3, set()), (_merge_all_chunks, 3, CHOSEN)],
)
def test_the_steps_of_a_query_have_the_expected_parameters(
    step: Callable[..., Any], positional: int, named: set[str]
) -> None:
    holds(step, positional, named, asynchronous=True)


def holds(method: Callable[..., Any], positional: int, named: set[str], asynchronous: bool) -> None:
    assert inspect.iscoroutinefunction(method) == asynchronous
    signature = inspect.signature(method)
    # Raises TypeError, with the parameter's name, for one that is missing, unknown or new and required.
    signature.bind(*range(positional), **dict.fromkeys(named))
