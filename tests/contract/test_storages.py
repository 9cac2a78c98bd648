"""LightRAG's own file storages and ours keep the same contract: every test runs against both."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lightrag.kg.factory import get_storage_class
from lightrag.kg.shared_storage import finalize_share_data, initialize_share_data
from lightrag.utils import EmbeddingFunc

from cragside.adapters.lightrag.ledger.changes import Always, GraphChange, VectorChange
from cragside.adapters.lightrag.ledger.interface import Ledger
from tests.contract.conftest import BACKENDS

DIMENSIONS = 16
# The names of LightRAG's own storages.
FILES = ("JsonKVStorage", "NanoVectorDBStorage", "NetworkXStorage")


async def embed(texts: list[str], **_: Any) -> np.ndarray[Any, Any]:
    """A unit vector that depends on the letters of a text alone."""
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for letter in text.lower():
            row[ord(letter) % DIMENSIONS] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@pytest.fixture(params=["file", *BACKENDS])
async def storages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SimpleNamespace]:
    initialize_share_data()
    backend = BACKENDS[request.param]() if request.param in BACKENDS else None
    if backend:
        ours = backend.storages()
        kv, vector, graph = ours.values, ours.vectors, ours.graph
    else:
        kv, vector, graph = map(get_storage_class, FILES)
    ledger = backend and await backend.open_ledger(tmp_path, "w", search_text=str.lower)
    config = {
        "working_dir": str(tmp_path),
        "embedding_batch_num": 4,
        "vector_db_storage_cls_kwargs": {"cosine_better_than_threshold": 0.2},
        "max_graph_nodes": 1000,
    }
    function = EmbeddingFunc(embedding_dim=DIMENSIONS, func=embed, model_name="letters")

    def build(storage: Any, namespace: str, **more: Any) -> Any:
        return storage(namespace=namespace, workspace="w", global_config=config, embedding_func=function, **more)

    built = SimpleNamespace(
        kind=request.param,
        kv=build(kv, "text_chunks"),
        other_kv=build(kv, "full_docs"),
        relations=build(
            vector, "relationships", cosine_better_than_threshold=0.2, meta_fields={"src_id", "tgt_id", "content"}
        ),
        entities=build(vector, "entities", cosine_better_than_threshold=0.2, meta_fields={"entity_name", "content"}),
        graph=build(graph, "chunk_entity_relation"),
    )
    opened = [built.kv, built.other_kv, built.relations, built.entities, built.graph]
    for storage in opened:
        await storage.initialize()
    built.write = LedgerWriter(built, ledger) if ledger else FileWriter(built)
    yield built
    if ledger:
        ledger.release()
    for storage in opened:
        await storage.finalize()
    finalize_share_data()


class FileWriter:
    """Writes as LightRAG does."""

    def __init__(self, storages: SimpleNamespace) -> None:
        self._storages = storages

    async def graph(self, nodes: dict[str, Any], edges: dict[tuple[str, str], Any]) -> None:
        graph = self._storages.graph
        await graph.remove_edges([ends for ends, edge in edges.items() if edge is None])
        await graph.remove_nodes([name for name, node in nodes.items() if node is None])
        await graph.upsert_nodes_batch([(name, node) for name, node in nodes.items() if node is not None])
        await graph.upsert_edges_batch([(*ends, edge) for ends, edge in edges.items() if edge is not None])

    async def vectors(self, storage: str, rows: dict[str, Any]) -> None:
        written = getattr(self._storages, storage)
        await written.delete([key for key, row in rows.items() if row is None])
        await written.upsert({key: row for key, row in rows.items() if row is not None})
        await written.index_done_callback()


class LedgerWriter:
    """Writes as a merge does."""

    def __init__(self, storages: SimpleNamespace, ledger: Ledger) -> None:
        self._storages = storages
        self._ledger = ledger

    async def graph(self, nodes: dict[str, Any], edges: dict[tuple[str, str], Any]) -> None:
        ordered = {(min(ends), max(ends)): edge for ends, edge in edges.items()}
        assert await self._ledger.apply(GraphChange(nodes, ordered), Always(), "letters")

    async def vectors(self, storage: str, rows: dict[str, Any]) -> None:
        stored = getattr(self._storages, storage)
        kept = {
            key: {name: row[name] for name in stored.meta_fields if name in row}
            for key, row in rows.items()
            if row is not None
        }
        known = {row["id"]: row["content"] for row in await stored.get_by_ids(list(kept)) if row}
        updated = {key: row for key, row in kept.items() if known.get(key) == row["content"]}
        written = {key: row for key, row in kept.items() if key not in updated}
        vectors = await embed([row["content"] for row in written.values()])
        change = VectorChange([key for key in rows if key not in kept], updated, written, vectors)
        assert await self._ledger.apply(GraphChange(vectors={stored.namespace: change}), Always(), "letters")


async def test_values_are_read_as_written_in_their_namespace_only(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": {"content": "ä\n'\"", "n": 1}, "b": {"content": "b"}})
    value = await storages.kv.get_by_id("a")
    assert value["content"] == "ä\n'\""
    assert value["n"] == 1
    assert value["_id"] == "a"
    assert value["llm_cache_list"] == []
    assert value["create_time"] == value["update_time"] > 0
    assert await storages.other_kv.get_by_id("a") is None


async def test_values_are_returned_in_the_requested_order_with_none_for_missing_ones(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({f"k{i}": {"content": str(i)} for i in range(700)})
    values = await storages.kv.get_by_ids(["k699", "missing", "k0"])
    assert [value and value["content"] for value in values] == ["699", None, "0"]


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


async def test_vectors_are_found_by_cosine(storages: SimpleNamespace) -> None:
    rows = {f"e{i}": {"entity_name": word, "content": word, "junk": 1} for i, word in enumerate(("aaa", "aab", "zzz"))}
    assert await storages.entities.query("aaa", 5) == []
    await storages.write.vectors("entities", rows)
    assert (await storages.entities.get_by_ids(["e0"]))[0]["entity_name"] == "aaa"
    found = await storages.entities.query("aaa", 5)
    assert [row["entity_name"] for row in found] == ["aaa", "aab"]
    assert found[0]["distance"] == pytest.approx(1.0, abs=1e-3)
    assert found[0]["id"] == "e0"
    assert "junk" not in found[0]
    assert [row["entity_name"] for row in await storages.entities.query("aaa", 1)] == ["aaa"]


async def test_a_given_embedding_spares_the_model(storages: SimpleNamespace) -> None:
    await storages.write.vectors("entities", {"e": {"entity_name": "zz", "content": "zz"}})
    vector = (await embed(["zz"]))[0]
    assert [row["id"] for row in await storages.entities.query("aaaa", 3, query_embedding=vector)] == ["e"]


async def test_a_rewritten_row_is_found_by_its_new_content_only(storages: SimpleNamespace) -> None:
    await storages.write.vectors("entities", {"e": {"entity_name": "a", "content": "aaa"}})
    assert len(await storages.entities.query("aaa", 5)) == 1
    await storages.write.vectors("entities", {"e": {"entity_name": "z", "content": "zzz"}})
    assert await storages.entities.query("aaa", 5) == []
    assert len(await storages.entities.query("zzz", 5)) == 1


async def test_a_row_with_unchanged_content_gets_its_new_fields(storages: SimpleNamespace) -> None:
    await storages.write.vectors("entities", {"e": {"entity_name": "a", "content": "aaa"}})
    await storages.write.vectors("entities", {"e": {"entity_name": "b", "content": "aaa"}})
    (found,) = await storages.entities.query("aaa", 5)
    assert (found["entity_name"], found["distance"]) == ("b", pytest.approx(1.0, abs=1e-3))


async def test_deleted_rows_are_not_found(storages: SimpleNamespace) -> None:
    rows = {"e1": {"entity_name": "aaa", "content": "aaa"}, "e2": {"entity_name": "aab", "content": "aab"}}
    await storages.write.vectors("entities", rows)
    assert len(await storages.entities.query("aaa", 5)) == 2
    await storages.write.vectors("entities", {"e1": None, "e2": None, "nope": None})
    assert await storages.entities.query("aaa", 5) == []
    assert await storages.entities.get_by_ids(["e1", "e2"]) == [None, None]


async def test_edges_have_no_direction(storages: SimpleNamespace) -> None:
    graph = storages.graph
    await storages.write.graph(
        {name: {"entity_id": name, "entity_type": "t"} for name in "ABC"},
        {("B", "A"): {"weight": "1", "description": "d"}, ("B", "C"): {"weight": "2"}},
    )
    assert await graph.node_degrees_batch(["B", "nope"]) == {"B": 2, "nope": 0}
    assert await graph.edge_degrees_batch([("A", "B")]) == {("A", "B"): 3}
    assert sorted((await graph.get_nodes_edges_batch(["B"]))["B"]) == [("B", "A"), ("B", "C")]
    asked = [{"src": "A", "tgt": "B"}, {"src": "C", "tgt": "B"}, {"src": "A", "tgt": "C"}]
    batch = await graph.get_edges_batch(asked)
    assert set(batch) == {("A", "B"), ("C", "B")}
    assert (batch["A", "B"]["description"], batch["C", "B"]["weight"]) == ("d", "2")
    assert set(await graph.get_nodes_batch(["A", "nope"])) == {"A"}


async def test_removed_rows_are_not_counted(storages: SimpleNamespace) -> None:
    graph = storages.graph
    await storages.write.graph(
        {name: {"entity_id": name} for name in "ABC"},
        {("A", "B"): {"weight": "1"}, ("C", "A"): {"weight": "1"}, ("B", "C"): {"weight": "1"}},
    )
    await storages.write.graph({"A": None}, {("A", "B"): None, ("A", "C"): None})
    assert await graph.get_nodes_batch(["A"]) == {}
    assert await graph.node_degrees_batch(["C"]) == {"C": 1}
    await storages.write.graph({}, {("C", "B"): None})
    assert await graph.get_nodes_edges_batch(["B", "C"]) == {"B": [], "C": []}
