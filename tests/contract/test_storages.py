"""LightRAG's own file storages and ours keep the same contract: every test runs against both."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lightrag.base import CURSOR_END, CURSOR_START, DocStatus, SourceAbsent, SourceConflict, SourceUnique
from lightrag.kg.factory import get_storage_class
from lightrag.kg.shared_storage import finalize_share_data, initialize_share_data
from lightrag.utils import EmbeddingFunc, compute_mdhash_id

from cragside.adapters.lightrag.storages.sqlite import register

DIMENSIONS = 16


async def embed(texts: list[str], **_: Any) -> np.ndarray[Any, Any]:
    """A unit vector that depends on the letters of a text alone."""
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for letter in text.lower():
            row[ord(letter) % DIMENSIONS] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@pytest.fixture(params=["file", "sqlite"])
async def storages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SimpleNamespace]:
    register()
    initialize_share_data()
    names = {
        "file": ("JsonKVStorage", "NanoVectorDBStorage", "NetworkXStorage", "JsonDocStatusStorage"),
        "sqlite": ("SqliteKVStorage", "SqliteVectorStorage", "SqliteGraphStorage", "SqliteDocStatusStorage"),
    }[request.param]
    config = {
        "working_dir": str(tmp_path),
        "embedding_batch_num": 4,
        "vector_db_storage_cls_kwargs": {"cosine_better_than_threshold": 0.2},
        "max_graph_nodes": 1000,
    }
    function = EmbeddingFunc(embedding_dim=DIMENSIONS, func=embed, model_name="letters")

    def build(name: str, namespace: str, **more: Any) -> Any:
        return get_storage_class(name)(
            namespace=namespace, workspace="w", global_config=config, embedding_func=function, **more
        )

    kv, vector, graph, status = names
    built = SimpleNamespace(
        kind=request.param,
        kv=build(kv, "text_chunks"),
        other_kv=build(kv, "full_docs"),
        relations=build(
            vector, "relationships", cosine_better_than_threshold=0.2, meta_fields={"src_id", "tgt_id", "content"}
        ),
        entities=build(vector, "entities", cosine_better_than_threshold=0.2, meta_fields={"entity_name", "content"}),
        graph=build(graph, "chunk_entity_relation"),
        status=build(status, "doc_status"),
    )
    opened = [built.kv, built.other_kv, built.relations, built.entities, built.graph, built.status]
    for storage in opened:
        await storage.initialize()
    yield built
    for storage in opened:
        await storage.finalize()
    finalize_share_data()


async def test_values_are_read_as_written_in_their_namespace_only(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": {"content": "ä\n'\"", "n": 1}, "b": {"content": "b"}})
    value = await storages.kv.get_by_id("a")
    assert value["content"] == "ä\n'\""
    assert value["n"] == 1
    assert value["_id"] == "a"
    assert value["llm_cache_list"] == []
    assert value["create_time"] == value["update_time"] > 0
    assert await storages.other_kv.get_by_id("a") is None
    assert await storages.other_kv.is_empty()
    assert not await storages.kv.is_empty()


async def test_many_values_come_in_the_order_asked_with_gaps(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({f"k{i}": {"content": str(i)} for i in range(700)})
    values = await storages.kv.get_by_ids(["k699", "missing", "k0"])
    assert [value and value["content"] for value in values] == ["699", None, "0"]
    assert await storages.kv.filter_keys({"k1", "x", "k600"}) == {"x"}


async def test_a_rewritten_value_replaces_the_old_one(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": {"content": "old", "extra": 1}})
    await storages.kv.upsert({"a": {"content": "new"}})
    value = await storages.kv.get_by_id("a")
    assert value["content"] == "new"
    assert "extra" not in value


async def test_changing_a_read_value_does_not_change_the_store(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": {"content": "x", "list": [1]}})
    (await storages.kv.get_by_id("a"))["list"].append(2)
    assert (await storages.kv.get_by_id("a"))["list"] == [1]


async def test_deleted_values_are_gone_and_missing_ones_are_no_error(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": {"content": "x"}, "b": {"content": "y"}})
    await storages.kv.delete(["a", "nope"])
    assert await storages.kv.get_by_id("a") is None
    assert (await storages.kv.drop())["status"] == "success"
    assert await storages.kv.is_empty()


async def test_vectors_are_found_by_cosine_after_the_commit(storages: SimpleNamespace) -> None:
    rows = {f"e{i}": {"entity_name": word, "content": word, "junk": 1} for i, word in enumerate(("aaa", "aab", "zzz"))}
    await storages.entities.upsert(rows)
    assert await storages.entities.query("aaa", 5) == []
    assert (await storages.entities.get_by_id("e0"))["entity_name"] == "aaa"
    await storages.entities.index_done_callback()
    found = await storages.entities.query("aaa", 5)
    assert [row["entity_name"] for row in found] == ["aaa", "aab"]
    assert found[0]["distance"] == pytest.approx(1.0, abs=1e-3)
    assert found[0]["id"] == "e0"
    assert "junk" not in found[0]
    assert [row["entity_name"] for row in await storages.entities.query("aaa", 1)] == ["aaa"]


async def test_a_given_embedding_spares_the_model(storages: SimpleNamespace) -> None:
    await storages.entities.upsert({"e": {"entity_name": "zz", "content": "zz"}})
    await storages.entities.index_done_callback()
    vector = (await embed(["zz"]))[0]
    assert [row["id"] for row in await storages.entities.query("aaaa", 3, query_embedding=vector)] == ["e"]


async def test_a_rewritten_row_is_found_by_its_new_content_only(storages: SimpleNamespace) -> None:
    await storages.entities.upsert({"e": {"entity_name": "a", "content": "aaa"}})
    await storages.entities.index_done_callback()
    await storages.entities.upsert({"e": {"entity_name": "z", "content": "zzz"}})
    await storages.entities.index_done_callback()
    assert await storages.entities.query("aaa", 5) == []
    assert len(await storages.entities.query("zzz", 5)) == 1


async def test_deleted_rows_are_not_found(storages: SimpleNamespace) -> None:
    name_id = compute_mdhash_id("aaa", prefix="ent-")
    await storages.entities.upsert(
        {name_id: {"entity_name": "aaa", "content": "aaa"}, "e2": {"entity_name": "aab", "content": "aab"}}
    )
    await storages.entities.index_done_callback()
    await storages.entities.delete_entity("aaa")
    await storages.entities.delete(["e2", "nope"])
    await storages.entities.index_done_callback()
    assert await storages.entities.query("aaa", 5) == []
    assert await storages.entities.get_by_ids([name_id, "e2"]) == [None, None]


async def test_relations_of_an_entity_go_with_it(storages: SimpleNamespace) -> None:
    await storages.relations.upsert(
        {
            "r1": {"src_id": "A", "tgt_id": "B", "content": "ab"},
            "r2": {"src_id": "C", "tgt_id": "A", "content": "ca"},
            "r3": {"src_id": "B", "tgt_id": "C", "content": "bc"},
        }
    )
    await storages.relations.index_done_callback()
    await storages.relations.delete_entity_relation("A")
    await storages.relations.index_done_callback()
    assert [row and row["id"] for row in await storages.relations.get_by_ids(["r1", "r2", "r3"])] == [None, None, "r3"]


async def test_an_abandoned_batch_leaves_nothing_behind(storages: SimpleNamespace) -> None:
    await storages.entities.upsert({"e": {"entity_name": "a", "content": "aaa"}})
    await storages.entities.drop_pending_index_ops()
    await storages.entities.index_done_callback()
    assert await storages.entities.get_by_id("e") is None


async def test_vectors_can_be_read_back(storages: SimpleNamespace) -> None:
    await storages.entities.upsert({"e": {"entity_name": "a", "content": "abc"}})
    vectors = await storages.entities.get_vectors_by_ids(["e", "nope"])
    assert list(vectors) == ["e"]
    np.testing.assert_allclose(vectors["e"], (await embed(["abc"]))[0], atol=1e-3)


async def test_edges_have_no_direction(storages: SimpleNamespace) -> None:
    graph = storages.graph
    await graph.upsert_nodes_batch([(name, {"entity_id": name, "entity_type": "t"}) for name in "ABC"])
    await graph.upsert_edge("B", "A", {"weight": "1", "description": "d"})
    await graph.upsert_edges_batch([("B", "C", {"weight": "2"})])
    assert await graph.has_edge("A", "B")
    assert not await graph.has_edge("A", "C")
    assert (await graph.get_edge("A", "B"))["description"] == "d"
    assert await graph.node_degree("B") == 2
    assert await graph.edge_degree("A", "B") == 3
    assert await graph.node_degree("nope") == 0
    assert sorted(await graph.get_node_edges("B")) == [("B", "A"), ("B", "C")]
    assert await graph.get_node_edges("nope") is None
    batch = await graph.get_edges_batch([{"src": "A", "tgt": "B"}, {"src": "C", "tgt": "B"}])
    assert batch["C", "B"]["weight"] == "2"
    assert set(await graph.get_nodes_batch(["A", "nope"])) == {"A"}
    assert await graph.has_nodes_batch(["A", "nope"]) == {"A"}


async def test_properties_that_are_not_given_stay(storages: SimpleNamespace) -> None:
    await storages.graph.upsert_node("A", {"entity_id": "A", "entity_type": "person", "description": "old"})
    await storages.graph.upsert_node("A", {"entity_id": "A", "description": "new"})
    node = await storages.graph.get_node("A")
    assert (node["entity_type"], node["description"]) == ("person", "new")


async def test_a_node_takes_its_edges_with_it(storages: SimpleNamespace) -> None:
    graph = storages.graph
    await graph.upsert_nodes_batch([(name, {"entity_id": name}) for name in "ABC"])
    await graph.upsert_edges_batch(
        [("A", "B", {"weight": "1"}), ("C", "A", {"weight": "1"}), ("B", "C", {"weight": "1"})]
    )
    await graph.delete_node("A")
    assert await graph.get_all_labels() == ["B", "C"]
    assert await graph.node_degree("C") == 1
    await graph.remove_edges([("C", "B")])
    assert await graph.get_all_edges() == []


async def test_names_rank_by_degree_and_then_by_name(storages: SimpleNamespace) -> None:
    graph = storages.graph
    await graph.upsert_nodes_batch([(name, {"entity_id": name}) for name in ("hub", "b", "a", "lonely")])
    await graph.upsert_edges_batch([("hub", "a", {"weight": "1"}), ("hub", "b", {"weight": "1"})])
    assert await graph.get_popular_labels() == ["hub", "a", "b", "lonely"]
    assert await graph.get_popular_labels(limit=2) == ["hub", "a"]
    assert (await graph.search_labels("LON"))[0] == "lonely"
    assert await graph.search_labels("  ") == []


async def test_a_subgraph_is_bounded_in_depth_and_size(storages: SimpleNamespace) -> None:
    graph = storages.graph
    await graph.upsert_nodes_batch([(name, {"entity_id": name}) for name in "ABCDE"])
    await graph.upsert_edges_batch([(a, b, {"weight": "1"}) for a, b in ("AB", "BC", "CD", "DE")])
    near = await graph.get_knowledge_graph("A", max_depth=2)
    assert sorted(node.id for node in near.nodes) == ["A", "B", "C"]
    assert {frozenset((edge.source, edge.target)) for edge in near.edges} == {frozenset("AB"), frozenset("BC")}
    small = await graph.get_knowledge_graph("*", max_nodes=3)
    assert len(small.nodes) == 3
    assert small.is_truncated
    assert (await graph.get_knowledge_graph("nope")).nodes == []


def row(status: DocStatus, created: str, **fields: Any) -> dict[str, Any]:
    return {
        "status": status,
        "content_summary": "s",
        "content_length": 1,
        "created_at": created,
        "updated_at": created,
        "file_path": "f",
        "metadata": {},
        **fields,
    }


async def test_documents_are_counted_and_listed_by_status(storages: SimpleNamespace) -> None:
    await storages.status.upsert(
        {
            "d1": row(DocStatus.PENDING, "2026-01-01", track_id="t1"),
            "d2": row(DocStatus.PROCESSED, "2026-01-02", track_id="t1", chunks_list=["c"]),
            "d3": row(DocStatus.FAILED, "2026-01-03", error_msg="why"),
        }
    )
    counts = await storages.status.get_all_status_counts()
    assert (counts["pending"], counts["processed"], counts["failed"], counts["all"]) == (1, 1, 1, 3)
    assert set(await storages.status.get_docs_by_statuses([DocStatus.PENDING, DocStatus.FAILED])) == {"d1", "d3"}
    assert set(await storages.status.get_docs_by_track_id("t1")) == {"d1", "d2"}
    assert await storages.status.count_docs_by_statuses([DocStatus.PENDING, DocStatus.PROCESSED]) == 2
    page, total = await storages.status.get_docs_paginated(sort_field="created_at", sort_direction="asc")
    assert [key for key, _ in page] == ["d1", "d2", "d3"]
    assert total == 3
    assert page[1][1].status == DocStatus.PROCESSED
    full = await storages.status.get_full_docs_by_ids(["d2", "nope"], strict=True)
    assert full["d2"].chunks_list == ["c"]


async def test_a_sweep_meets_every_document_once_in_order_of_creation(storages: SimpleNamespace) -> None:
    rows = {f"d{i:02}": row(DocStatus.PENDING, f"2026-01-{1 + i % 7:02}") for i in range(25)}
    await storages.status.upsert({**rows, "other": row(DocStatus.PROCESSED, "2026-01-01")})
    met: list[str] = []
    position = CURSOR_START
    while position is not CURSOR_END:
        page = await storages.status.get_docs_by_statuses_page(
            [DocStatus.PENDING, DocStatus.FAILED], limit=4, position=position, strict=True
        )
        met += page.docs
        position = page.next_position
    assert met == sorted(rows, key=lambda key: (rows[key]["created_at"], key))


async def test_a_field_changes_without_the_rest(storages: SimpleNamespace) -> None:
    await storages.status.upsert({"d": row(DocStatus.PENDING, "2026-01-01", chunks_list=["c1"])})
    await storages.status.update_doc_status_fields("d", {"status": DocStatus.FAILED.value})
    stored = await storages.status.get_by_id("d")
    assert (stored["status"], stored["chunks_list"]) == ("failed", ["c1"])
    assert await storages.status.count_docs_by_statuses([DocStatus.PENDING]) == 0
    with pytest.raises(ValueError, match="created_at"):
        await storages.status.update_doc_status_fields("d", {"created_at": "x"})
    with pytest.raises(Exception, match="nope"):
        await storages.status.update_doc_status_fields("nope", {"status": "failed"})
    await storages.status.update_doc_status_fields("nope", {"status": "failed"}, missing_ok=True)


async def test_a_file_name_has_one_owner_and_duplicates_do_not_count(storages: SimpleNamespace) -> None:
    duplicate = {"is_duplicate": True, "original_doc_id": "d1"}
    await storages.status.upsert(
        {
            "d1": row(DocStatus.PROCESSED, "2026-01-01", file_path="a.md"),
            "dup": row(DocStatus.FAILED, "2026-01-02", file_path="a.md", metadata=duplicate),
            "x1": row(DocStatus.PROCESSED, "2026-01-01", file_path="b.md"),
            "x2": row(DocStatus.PROCESSED, "2026-01-02", file_path="b.md"),
        }
    )
    unique = await storages.status.resolve_doc_source_strict("a.md")
    assert isinstance(unique, SourceUnique)
    assert unique.doc_id == "d1"
    assert isinstance(await storages.status.resolve_doc_source_strict("b.md"), SourceConflict)
    assert isinstance(await storages.status.resolve_doc_source_strict("c.md"), SourceAbsent)
    assert (await storages.status.get_doc_by_file_basename("a.md"))[0] == "d1"


async def test_content_is_found_by_hash_but_not_through_its_own_duplicates(storages: SimpleNamespace) -> None:
    pointer = {"is_duplicate": True, "original_doc_id": "d1"}
    await storages.status.upsert(
        {
            "d1": row(DocStatus.PROCESSED, "2026-01-02", content_hash="h"),
            "dup": row(DocStatus.FAILED, "2026-01-01", content_hash="h", metadata=pointer),
            "d3": row(DocStatus.PROCESSED, "2026-01-03", content_hash="h"),
        }
    )
    assert (await storages.status.get_doc_by_content_hash("h"))[0] == "dup"
    assert (await storages.status.get_doc_by_content_hash("h", exclude_doc_id="d1"))[0] == "d3"
    assert await storages.status.get_doc_by_content_hash("other") is None
    await storages.status.delete(["d1", "dup", "d3"])
    assert await storages.status.is_empty()
