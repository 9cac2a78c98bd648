import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cragside.store.sqlite.vectors import EXACT_BELOW, VectorIndex


def unit_rows(count: int, dimensions: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(rows: np.ndarray) -> VectorIndex:
    index = VectorIndex(rows.shape[1])
    index.add(list(range(10, 10 + len(rows))), rows)
    return index


def test_an_empty_index_finds_nothing() -> None:
    assert VectorIndex(8).search(np.ones(8, np.float32), 5, 0.0) == []


def test_the_nearest_above_the_threshold_are_first() -> None:
    rows = np.eye(4, dtype=np.float32)
    found = filled(rows).search(np.array([0.9, 0.4, 0.1, 0], np.float32), 3, 0.2)
    assert [key for key, _ in found] == [10, 11]
    assert found[0][1] == pytest.approx(0.9)


@pytest.mark.parametrize("dimensions", [16, 64, 100, 256])
def test_a_large_index_finds_what_an_exact_search_finds(dimensions: int) -> None:
    rows = unit_rows(EXACT_BELOW + 2_000, dimensions, seed=dimensions)
    index = filled(rows)
    hits = wanted = 0
    for query in unit_rows(20, dimensions, seed=1) * 0.3 + rows[:20]:
        query = query / np.linalg.norm(query)
        exact = set((np.argsort(-(rows @ query))[:5] + 10).tolist())
        found = index.search(query.astype(np.float32), 5, -1.0)
        assert found[0][0] == 10 + int(np.argmax(rows @ query))
        assert found[0][1] == pytest.approx(float(np.max(rows @ query)), abs=1e-5)
        hits += len(exact & {key for key, _ in found})
        wanted += 5
    # Random directions are the hardest case; at 16 dimensions signs alone tell little.
    assert hits / wanted > (0.6 if dimensions == 16 else 0.7)


def test_removed_vectors_are_not_found_and_the_rest_still_are() -> None:
    rows = unit_rows(100, 32, seed=3)
    index = filled(rows)
    index.remove([10, 109, 50, 4711])
    assert len(index) == 97
    assert set(index.keys().tolist()) == set(range(10, 110)) - {10, 109, 50}
    for row in (1, 98, 60):
        assert index.search(rows[row], 1, 0.0)[0][0] == row + 10


@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_any_order_of_adding_and_removing_keeps_keys_and_vectors_together(steps: list[tuple[bool, int]]) -> None:
    rows = unit_rows(31, 16, seed=5)
    index, alive = VectorIndex(16), set[int]()
    for adding, key in steps:
        if adding and key not in alive:
            index.add([key], rows[key : key + 1])
            alive.add(key)
        elif not adding:
            index.remove([key])
            alive.discard(key)
    assert sorted(index.keys().tolist()) == sorted(alive)
    for key in alive:
        assert index.search(rows[key], 1, 0.5)[0] == (key, pytest.approx(1.0, abs=1e-5))


def test_cosines_are_exact_where_the_index_would_only_estimate() -> None:
    noise = np.random.default_rng(7).normal(size=(EXACT_BELOW + 500, 64)).astype(np.float32)
    vectors = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    index = VectorIndex(64)
    index.add(list(range(len(vectors))), vectors)
    keys, cosines = index.nearest(vectors[11], 0.2)
    exact = vectors @ vectors[11]
    assert keys.tolist() == [int(key) for key in np.argsort(-exact, kind="stable") if exact[key] >= 0.2]
    assert cosines.tolist() == pytest.approx(exact[keys].tolist())


def test_equal_cosines_are_ordered_by_key() -> None:
    index = VectorIndex(2)
    index.add([1, 2, 3, 4], np.array([[1, 0], [0, 1], [0, 1], [0, 1]], np.float32))
    index.remove([1])
    assert index.nearest(np.array([0, 1], np.float32), 0.5)[0].tolist() == [2, 3, 4]


def test_a_reserved_index_takes_vectors_without_moving_those_it_has() -> None:
    rows = unit_rows(90, 32, seed=9)
    index = VectorIndex(32)
    index.reserve(90)
    index.add(list(range(10)), rows[:10])
    place = index.keys().__array_interface__["data"]
    for start in range(10, 90, 10):
        index.add(list(range(start, start + 10)), rows[start : start + 10])
    assert index.keys().__array_interface__["data"] == place
    assert [index.search(row, 1, 0.0)[0][0] for row in rows] == list(range(90))
