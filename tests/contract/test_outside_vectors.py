"""A change of vectors reaches any product whole, in order and once, whatever process stops in between.

Qdrant's engine is the one inside its client, behind HTTP: see `tests.services.qdrant_server`.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from cragside.store.errors import LedgerError
from cragside.store.outside.vectors import VectorTarget
from tests.outside_vectors import Memory, VectorsInMemory

Target = VectorTarget[Any]
SIZE = 4
EAST = [1.0, 0.0, 0.0, 0.0]


@pytest.fixture(params=["memory", pytest.param("qdrant", marks=pytest.mark.services("qdrant"))])
async def another(request: pytest.FixtureRequest) -> AsyncIterator[Callable[[], Target]]:
    """Makes targets, as several processes have them on one server."""
    if request.param == "memory":
        memory = Memory()
        yield lambda: VectorsInMemory(memory)
        return
    from cragside.databases.qdrant import QdrantDatabase
    from cragside.databases.server_addresses import QdrantAddress
    from cragside.store.outside.qdrant import QdrantVectors

    database = QdrantDatabase(QdrantAddress.parse(request.getfixturevalue("qdrant")), most=3)
    yield lambda: QdrantVectors(database)
    await database.close()


@pytest.fixture
def target(another: Callable[[], Target]) -> Target:
    return another()


@pytest.fixture
def key() -> str:
    return f"w{uuid4().hex[:16]}"


@pytest.fixture
def suffix() -> str:
    """The model of a test, which has collections of its own."""
    return f"m{uuid4().hex[:12]}_{SIZE}d"


def change(suffix: str, *removed: str, updated: dict[str, Any] | None = None, **written: str) -> dict[str, Any]:
    """A change of entities by their ids, with their texts."""
    vector = base64.b64encode(np.asarray(EAST, np.float32).tobytes()).decode()
    rows = {
        "removed": list(removed),
        "updated": updated or {},
        "written": {name: [{"content": text, "created_at": 7}, vector] for name, text in written.items()},
    }
    return {"suffix": suffix, "dimensions": SIZE, "rows": {"entities": rows}}


async def contents(target: Target, suffix: str, key: str, *names: str) -> list[str | None]:
    """The texts of entities."""
    rows = await target.rows(target.collection("entities", suffix), key, names)
    return [rows[name].row["content"] if name in rows else None for name in names]


def stopped(target: Target, others: Callable[[], Awaitable[None]]) -> Target:
    """Have others write between a target's look at the fences and its own requests."""
    put, alone, waiting = target.put, asyncio.Lock(), [others]

    async def stopping(*change: Any) -> None:
        async with alone:
            while waiting:
                await waiting.pop()()
        await put(*change)

    target.put = stopping  # type: ignore[method-assign]  # of this one alone
    return target


async def test_a_change_is_written_once(target: Target, key: str, suffix: str) -> None:
    first = uuid4()
    assert await target.write(key, 1, first, change(suffix, a="one"))
    assert await target.write(key, 1, first, change(suffix, a="again"))
    assert await contents(target, suffix, key, "a", "b") == ["one", None]
    assert await target.applied(key) == 1
    assert await target.write(key, 2, uuid4(), change(suffix, "a", b="two"))
    assert await contents(target, suffix, key, "a", "b") == [None, "two"]
    assert await target.applied(key) == 2


async def test_a_late_writer_and_one_that_comes_too_early_change_nothing(target: Target, key: str, suffix: str) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.write(key, 2, uuid4(), change(suffix, b="two"))
    assert not await target.write(key, 1, uuid4(), change(suffix, a="late"))
    assert not await target.write(key, 2, uuid4(), change(suffix, a="late"))
    assert not await target.write(key, 4, uuid4(), change(suffix, a="early"))
    assert await contents(target, suffix, key, "a") == ["one"]


async def test_a_writer_that_was_stopped_among_its_requests_brings_nothing_back(
    another: Callable[[], Target], target: Target, key: str, suffix: str
) -> None:
    first = uuid4()
    ours = change(suffix, a="one", b="one", c="one")

    async def others() -> None:
        assert await target.write(key, 1, first, ours)
        assert await target.write(key, 2, uuid4(), change(suffix, "a", updated={"c": {"content": "newer"}}, b="two"))

    assert not await stopped(another(), others).write(key, 1, first, ours)
    assert await contents(target, suffix, key, "a", "b", "c") == [None, "two", "newer"]
    assert await target.applied(key) == 2


async def test_a_late_update_of_a_row_changes_nothing(
    another: Callable[[], Target], target: Target, key: str, suffix: str
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one", b="one"))
    late, second = change(suffix, updated={"a": {"content": "late"}, "b": {"content": "late"}}), uuid4()

    async def others() -> None:
        assert await target.write(key, 2, second, late)
        assert await target.write(key, 3, uuid4(), change(suffix, "a", b="three"))

    assert not await stopped(another(), others).write(key, 2, second, late)
    assert await contents(target, suffix, key, "a", "b") == [None, "three"]


async def test_a_writer_that_comes_after_its_store_was_removed_leaves_nothing(
    another: Callable[[], Target], target: Target, key: str, suffix: str
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    assert not await stopped(another(), lambda: target.drop(key)).write(key, 2, uuid4(), change(suffix, b="two"))
    assert await target.count(target.collection("entities", suffix), key) == 0


async def test_what_a_half_written_change_left_out_is_written_by_the_next_process(
    another: Callable[[], Target], target: Target, key: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = another()
    put = broken.put

    async def breaking(collection: str, *rest: Any) -> None:
        if "entities" in collection:
            raise LedgerError("the line broke", "is out of reach")
        await put(collection, *rest)

    monkeypatch.setattr(broken, "put", breaking)
    first, ours = uuid4(), change(suffix, a="one")
    with pytest.raises(LedgerError):
        await broken.write(key, 1, first, ours)
    assert await target.applied(key) == 0
    assert await target.write(key, 1, first, ours)
    assert (await target.applied(key), await contents(target, suffix, key, "a")) == (1, ["one"])


async def test_a_new_value_keeps_the_vector_and_the_time_of_its_making(target: Target, key: str, suffix: str) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.write(key, 2, uuid4(), change(suffix, updated={"a": {"source_id": "x", "created_at": 99}}))
    collection = target.collection("entities", suffix)
    (found,) = await target.nearest(collection, key, EAST, least=0.9, most=5)
    assert (found["content"], found["source_id"], found["created_at"]) == ("one", "x", 7)
    assert found["distance"] == pytest.approx(1.0)
    ((stored,),) = [batch async for batch in target.all(collection, key)]
    assert (stored.row["id"], stored.vector) == ("a", EAST)


async def test_a_store_never_sees_the_rows_of_another_one(target: Target, key: str, suffix: str) -> None:
    other, collection = f"{key}0", target.collection("entities", suffix)
    await target.write(key, 1, uuid4(), change(suffix, a="one", **{f"n{number}": "x" for number in range(250)}))
    await target.write(other, 1, uuid4(), change(suffix, a="another"))
    (found,) = await target.nearest(collection, other, EAST, least=0.0, most=500)
    assert found["content"] == "another"
    assert (await target.count(collection, key), await target.count(collection, other)) == (251, 1)
    await target.drop(key)
    assert (await target.count(collection, key), await contents(target, suffix, other, "a")) == (0, ["another"])
    assert not await target.write(key, 2, uuid4(), change(suffix, a="late"))
    assert await target.count(collection, key) == 0
