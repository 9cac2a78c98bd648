"""LightRAG's own file storages and ours keep the same contract: every test runs against both."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lightrag.kg.factory import get_storage_class

from cragside.store.driver import Always, GraphChange, VectorChange
from cragside.store.ledger import Ledger
from tests.contract.opened_storages import embed, opened
from tests.services.backends import BACKENDS, made

# The names of LightRAG's own storages.
FILES = ("JsonKVStorage", "NanoVectorDBStorage", "NetworkXStorage")


@pytest.fixture(params=["file", *BACKENDS])
async def storages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SimpleNamespace]:
    if request.param == "file":
        async with opened(*map(get_storage_class, FILES), tmp_path) as built:
            built.write = FileWriter(built)
            yield built
        return
    with made(request) as backend:
        ours = backend.storages()
        ledger = await backend.open_ledger(tmp_path, "w", search_text=str.lower)
        store = backend.place_of(tmp_path, (await ledger.driver.opened_with())[1])
        async with opened(ours.values, ours.vectors, ours.graph, tmp_path, store) as built:
            built.write = LedgerWriter(built, ledger)
            yield built
            ledger.driver.release()


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


def passage(content: str, **more: Any) -> dict[str, Any]:
    """A value as LightRAG has it in `text_chunks`."""
    return {"content": content, "tokens": 1, "chunk_order_index": 0, "full_doc_id": "d", "file_path": "f", **more}


async def test_values_are_read_as_written_in_their_namespace_only(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": passage("ä\n'\"", tokens=7), "b": passage("b")})
    value = await storages.kv.get_by_id("a")
    assert value["content"] == "ä\n'\""
    assert (value["tokens"], value["full_doc_id"], value["file_path"]) == (7, "d", "f")
    assert value["llm_cache_list"] == []
    assert value["create_time"] == value["update_time"] > 0
    assert await storages.other_kv.get_by_id("a") is None


async def test_values_are_returned_in_the_requested_order_with_none_for_missing_ones(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({f"k{i}": passage(str(i)) for i in range(700)})
    values = await storages.kv.get_by_ids(["k699", "missing", "k0"])
    assert [value and value["content"] for value in values] == ["699", None, "0"]


async def test_a_rewritten_value_replaces_the_old_one(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": passage("old", llm_cache_list=["x"])})
    await storages.kv.upsert({"a": passage("new")})
    value = await storages.kv.get_by_id("a")
    assert value["content"] == "new"
    assert value["llm_cache_list"] == []


async def test_changing_a_read_value_does_not_change_the_store(storages: SimpleNamespace) -> None:
    await storages.kv.upsert({"a": passage("x", llm_cache_list=["x"])})
    (await storages.kv.get_by_id("a"))["llm_cache_list"].append("y")
    assert (await storages.kv.get_by_id("a"))["llm_cache_list"] == ["x"]


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
