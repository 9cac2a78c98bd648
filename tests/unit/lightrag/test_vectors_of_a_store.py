"""Vectors of a store in memory: loaded at the first search, and what other processes write afterwards."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cragside.store.lightrag import EmbeddingFunc
from cragside.store.sqlite.database import Database
from cragside.store.sqlite.driver import erase_vectors, write_vectors
from cragside.store.sqlite.vectors import SqliteVectorStorage

NAMESPACES = ("chunks", "entities", "relationships")
DIMENSIONS = 16
Open = Callable[[str], Awaitable[SqliteVectorStorage]]


def unit_rows(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


async def no_model(*_: object, **__: object) -> np.ndarray:
    raise AssertionError("The vector is given.")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Database]:
    """The connection of another process."""
    database = Database(tmp_path / "store.sqlite3")
    database._users = 1
    yield database
    database.release()


@pytest.fixture
async def open_storage(tmp_path: Path) -> AsyncIterator[Open]:
    storages = []

    async def open_one(namespace: str) -> SqliteVectorStorage:
        config = {"working_dir": str(tmp_path), "vector_db_storage_cls_kwargs": {}, "embedding_batch_num": 32}
        storage = SqliteVectorStorage(namespace, "", config, EmbeddingFunc(DIMENSIONS, no_model))
        await storage.initialize()
        storages.append(storage)
        return storage

    yield open_one
    for storage in storages:
        await storage.finalize()


def write(database: Database, namespace: str, names: list[str], vectors: np.ndarray) -> None:
    with database.transaction():
        write_vectors(database, namespace, {name: _row(namespace, name) for name in names}, vectors)


def erase(database: Database, namespace: str, names: list[str]) -> None:
    with database.transaction():
        erase_vectors(database, namespace, names)


def _row(namespace: str, name: str) -> dict[str, str]:
    # The ends of relations are in another order than their numbers.
    ends = {"entities": {"entity_name": name}, "relationships": {"src_id": name, "tgt_id": name[::-1]}}
    return {"content": name, **ends.get(namespace, {})}


async def nearest(storage: SqliteVectorStorage, vector: np.ndarray) -> str:
    found = await storage.query("?", 1, vector.tolist())
    return str(found[0]["id"]) if found and found[0]["distance"] > 0.99 else ""


@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_a_search_finds_its_own_namespace_and_what_another_process_writes_and_removes(
    open_storage: Open, other: Database, namespace: str
) -> None:
    names, rows = [str(1000 + n) for n in range(1200)], unit_rows(1200, seed=1)
    for each in NAMESPACES:  # the numbers of the namespaces are mixed
        write(other, each, names[:700], rows[:700] if each == namespace else -rows[:700])
    write(other, namespace, names[700:1100], rows[700:1100])
    storage = await open_storage(namespace)
    assert [await nearest(storage, row) for row in rows] == names[:1100] + [""] * 100

    erase(other, namespace, names[5:600])
    write(other, namespace, ["1000", *names[1100:]], np.concatenate([rows[5:6], rows[1100:]]))
    expected = ["", *names[1:5], "1000", *[""] * 594, *names[600:]]
    assert [await nearest(storage, row) for row in rows] == expected


@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_loading_reads_vectors_in_the_order_of_the_table_and_sorts_none(
    open_storage: Open, other: Database, namespace: str
) -> None:
    storage = await open_storage(namespace)
    plan = other.all(f"EXPLAIN QUERY PLAN {storage._next}", (namespace, 0, 10))
    assert [row[3] for row in plan if "TEMP B-TREE" in row[3]] == []


async def test_of_equal_vectors_the_one_that_was_written_first_comes_first(open_storage: Open, other: Database) -> None:
    same = np.repeat(unit_rows(1, seed=2), 3, axis=0)
    write(other, "relationships", ["aa1", "zz2", "mm3"], same)
    storage = await open_storage("relationships")
    found = await storage.query("?", 3, same[0].tolist())
    assert [row["id"] for row in found] == ["aa1", "zz2", "mm3"]


@pytest.mark.parametrize("namespace", NAMESPACES)
async def test_rows_that_another_process_removed_take_no_place_of_those_that_are_there(
    open_storage: Open, other: Database, namespace: str
) -> None:
    names = [str(1000 + n) for n in range(500)]
    rows = np.eye(1, DIMENSIONS, dtype=np.float32) + 0.001 * np.arange(500, dtype=np.float32)[:, None]
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    write(other, namespace, names, rows)
    storage = await open_storage(namespace)
    assert await nearest(storage, rows[0]) == "1000"
    erase(other, namespace, names[:495])
    found = await storage.query("?", 5, rows[0].tolist())
    assert [row["id"] for row in found] == names[495:]


async def test_vectors_of_rows_that_are_written_again_and_again_do_not_pile_up(
    open_storage: Open, other: Database
) -> None:
    names, rows = [str(1000 + n) for n in range(200)], unit_rows(200, seed=4)
    storage = await open_storage("entities")
    for _ in range(20):
        write(other, "entities", names, rows)
        assert await nearest(storage, -rows[0]) == ""  # comes upon none of them
    index = await storage._current_index(DIMENSIONS)
    assert len(index) <= 1400
    assert [await nearest(storage, row) for row in rows] == names


async def test_other_tasks_have_their_turn_while_a_store_is_loaded(open_storage: Open, other: Database) -> None:
    count = 4_500
    write(other, "relationships", [str(10_000 + n) for n in range(count)], unit_rows(count, seed=5))
    storage = await open_storage("relationships")
    searches = [asyncio.create_task(nearest(storage, row)) for row in unit_rows(count, seed=5)[:2]]
    turns = 0
    while not all(search.done() for search in searches):
        turns += 1
        await asyncio.sleep(0)
    assert turns > 2
    assert [search.result() for search in searches] == ["10000", "10001"]
    assert len(await storage._current_index(DIMENSIONS)) == count


async def test_loading_goes_on_where_a_cancelled_search_left_it(open_storage: Open, other: Database) -> None:
    count = 4_500
    rows = unit_rows(count, seed=6)
    write(other, "relationships", [str(10_000 + n) for n in range(count)], rows)
    storage = await open_storage("relationships")
    search = asyncio.create_task(nearest(storage, rows[0]))
    await asyncio.sleep(0)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    erase(other, "relationships", ["10000"])
    write(other, "relationships", ["10001"], rows[1:2])
    assert [await nearest(storage, row) for row in rows[:3]] == ["", "10001", "10002"]
    assert len(await storage._current_index(DIMENSIONS)) <= count + 1


async def test_the_number_of_passages_follows_what_another_process_writes(open_storage: Open, other: Database) -> None:
    storage = await open_storage("chunks")
    for first in (0, 100):
        write(other, "chunks", [str(1000 + first + n) for n in range(100)], unit_rows(100, seed=first))
        await storage.worded("1000", 1)
        assert storage._passages == first + 100
