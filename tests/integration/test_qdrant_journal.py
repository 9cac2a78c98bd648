"""A change of vectors reaches Qdrant whole, in order and once, whatever process stops in between.

The engine is the one inside Qdrant's client, behind HTTP: see `tests.services.qdrant_server`.
"""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models
from typing_extensions import override

from cragside.databases import gate
from cragside.databases.qdrant import QdrantDatabase
from cragside.databases.server_addresses import QdrantAddress
from cragside.store.ledger.failures import LedgerError
from cragside.store.ledger.postgres.journal import ChangesMissing
from cragside.store.storages.qdrant import points
from cragside.store.storages.qdrant.fence import FencedVectors
from tests.services.qdrant_server import LastingStandIn, QdrantStandIn

pytestmark = pytest.mark.services

SIZE = 4
EAST, NORTH = [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]


@pytest.fixture
def key() -> str:
    return f"w{uuid4().hex[:16]}"


@pytest.fixture
def suffix() -> str:
    """The model of a test, which has collections of its own."""
    return f"m{uuid4().hex[:12]}_{SIZE}d"


@pytest.fixture
async def database(qdrant: str) -> AsyncIterator[QdrantDatabase]:
    database = QdrantDatabase(QdrantAddress.parse(qdrant), most=3)
    yield database
    await database.close()


@pytest.fixture
def target(database: QdrantDatabase) -> FencedVectors:
    return FencedVectors(database)


@pytest.fixture
async def client(qdrant: str) -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(url=qdrant)
    yield client
    await client.close()


def change(suffix: str, *removed: str, updated: dict[str, Any] | None = None, **written: str) -> dict[str, Any]:
    """A change of entities by their ids, with their texts."""
    vector = base64.b64encode(np.asarray(EAST, np.float32).tobytes()).decode()
    rows = {
        "removed": list(removed),
        "updated": updated or {},
        "written": {name: [{"content": text, "created_at": 7}, vector] for name, text in written.items()},
    }
    return {"suffix": suffix, "dimensions": SIZE, "rows": {"entities": rows}}


async def contents(target: FencedVectors, suffix: str, key: str, *names: str) -> list[str | None]:
    """The texts of entities."""
    rows = await target.rows(points.collection_of("entities", suffix), key, names)
    return [None if row is None else row["content"] for row in rows]


async def test_a_change_is_written_once(target: FencedVectors, key: str, suffix: str) -> None:
    first = uuid4()
    assert await target.write(key, 1, first, change(suffix, a="one"))
    assert await target.write(key, 1, first, change(suffix, a="again"))
    assert await contents(target, suffix, key, "a", "b") == ["one", None]
    assert await target.applied(key) == 1
    assert await target.write(key, 2, uuid4(), change(suffix, "a", b="two"))
    assert await contents(target, suffix, key, "a", "b") == [None, "two"]
    assert await target.applied(key) == 2


async def test_a_late_writer_and_one_that_comes_too_early_change_nothing(
    target: FencedVectors, key: str, suffix: str
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.write(key, 2, uuid4(), change(suffix, b="two"))
    assert not await target.write(key, 1, uuid4(), change(suffix, a="late"))
    assert not await target.write(key, 2, uuid4(), change(suffix, a="late"))
    with pytest.raises(ChangesMissing):
        await target.write(key, 4, uuid4(), change(suffix, a="early"))
    assert await contents(target, suffix, key, "a") == ["one"]


class Stopped(FencedVectors):
    """Lets others write between its look at the fences and its own requests."""

    others: Any = None

    def __init__(self, database: QdrantDatabase) -> None:
        super().__init__(database)
        self.alone = asyncio.Lock()

    @override
    async def _write(self, collection: str, operations: list[models.UpdateOperation]) -> None:
        async with self.alone:
            others, self.others = self.others, None
            if others is not None:
                await others()
        await super()._write(collection, operations)


async def test_a_writer_that_was_stopped_among_its_requests_brings_nothing_back(
    database: QdrantDatabase, target: FencedVectors, key: str, suffix: str
) -> None:
    first = uuid4()
    stopped = Stopped(database)
    ours = change(suffix, a="one", b="one", c="one")

    async def others() -> None:
        assert await target.write(key, 1, first, ours)
        assert await target.write(key, 2, uuid4(), change(suffix, "a", updated={"c": {"content": "newer"}}, b="two"))

    stopped.others = others
    assert not await stopped.write(key, 1, first, ours)
    assert await contents(target, suffix, key, "a", "b", "c") == [None, "two", "newer"]
    assert await target.applied(key) == 2


async def test_a_late_update_of_a_row_changes_nothing(
    database: QdrantDatabase, target: FencedVectors, key: str, suffix: str
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one", b="one"))
    late, second = change(suffix, updated={"a": {"content": "late"}, "b": {"content": "late"}}), uuid4()
    stopped = Stopped(database)

    async def others() -> None:
        assert await target.write(key, 2, second, late)
        assert await target.write(key, 3, uuid4(), change(suffix, "a", b="three"))

    stopped.others = others
    assert not await stopped.write(key, 2, second, late)
    assert await contents(target, suffix, key, "a", "b") == [None, "three"]


async def test_a_writer_that_comes_after_its_store_was_removed_leaves_nothing(
    database: QdrantDatabase, target: FencedVectors, key: str, suffix: str, client: AsyncQdrantClient
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    stopped = Stopped(database)
    stopped.others = lambda: target.drop(key)
    assert not await stopped.write(key, 2, uuid4(), change(suffix, b="Otterburn"))
    found, _ = await client.scroll(points.collection_of("entities", suffix))
    assert [point for point in found if (point.payload or {}).get("workspace_id") == key] == []
    assert "Otterburn" not in str([point.payload for point in found])


async def test_what_a_half_written_change_left_out_is_written_by_the_next_process(
    database: QdrantDatabase, target: FencedVectors, key: str, suffix: str
) -> None:
    class Broken(FencedVectors):
        @override
        async def _write(self, collection: str, operations: list[models.UpdateOperation]) -> None:
            if "entities" in collection and len(operations) > 1:
                raise LedgerError("the line broke", "is out of reach")
            await super()._write(collection, operations)

    first, ours = uuid4(), change(suffix, a="one")
    with pytest.raises(LedgerError):
        await Broken(database).write(key, 1, first, ours)
    assert await target.applied(key) == 0
    assert await target.write(key, 1, first, ours)
    assert (await target.applied(key), await contents(target, suffix, key, "a")) == (1, ["one"])


async def test_a_new_value_keeps_the_vector_and_the_time_of_its_making(
    target: FencedVectors, key: str, suffix: str
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.write(key, 2, uuid4(), change(suffix, updated={"a": {"source_id": "x", "created_at": 99}}))
    (found,) = await target.nearest(points.collection_of("entities", suffix), key, EAST, least=0.9, most=5)
    assert (found["content"], found["source_id"], found["created_at"]) == ("one", "x", 7)
    assert found["distance"] == pytest.approx(1.0)


async def test_a_row_that_lightrags_own_programs_wrote_is_older_than_any_change(
    target: FencedVectors, key: str, suffix: str, client: AsyncQdrantClient
) -> None:
    await target.write(key, 1, uuid4(), change(suffix))
    own = {"id": "a", "workspace_id": key, "content": "theirs"}
    theirs = models.PointStruct(id=points.point_id(key, "a"), vector=NORTH, payload=own)
    await client.upsert(points.collection_of("entities", suffix), [theirs])
    await target.write(key, 2, uuid4(), change(suffix, updated={"a": {"content": "ours"}}))
    assert await contents(target, suffix, key, "a") == ["ours"]


async def test_a_store_never_sees_the_rows_of_another_one(target: FencedVectors, key: str, suffix: str) -> None:
    other, collection = f"{key}0", points.collection_of("entities", suffix)
    await target.write(key, 1, uuid4(), change(suffix, a="one", **{f"n{number}": "x" for number in range(250)}))
    await target.write(other, 1, uuid4(), change(suffix, a="another"))
    (found,) = await target.nearest(collection, other, EAST, least=0.0, most=500)
    assert found["content"] == "another"
    assert (await target.count(collection, key), await target.count(collection, other)) == (251, 1)
    await target.drop(key)
    assert (await target.count(collection, key), await contents(target, suffix, other, "a")) == (0, ["another"])
    assert not await target.write(key, 2, uuid4(), change(suffix, a="late"))
    assert await target.count(collection, key) == 0


async def test_what_was_removed_goes_a_week_later(
    target: FencedVectors, key: str, suffix: str, client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def left() -> int:
        found, _ = await client.scroll(points.collection_of("entities", suffix))
        return sum(points.GONE in (point.payload or {}) for point in found)

    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.write(key, 2, uuid4(), change(suffix, "a"))
    await target.write(key, 3, uuid4(), change(suffix))
    assert await left() == 1
    now = time.time()
    monkeypatch.setattr(points.time, "time", lambda: now + points.FORGET_SECONDS + 2)
    await target.write(key, 4, uuid4(), change(suffix))
    assert await left() == 0


async def test_an_emptied_collection_is_noticed(
    target: FencedVectors, key: str, suffix: str, client: AsyncQdrantClient
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await client.delete_collection(points.collection_of("chunks", suffix))
    assert await target.applied(key) == 0
    with pytest.raises(ChangesMissing):
        await target.write(key, 2, uuid4(), change(suffix, b="two"))


async def test_a_server_that_is_away_or_hangs_is_told_and_heals(
    started: Any, key: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
    server = started("qdrant", lambda: LastingStandIn("hush"))
    database = QdrantDatabase(QdrantAddress.parse(server.url, "hush"), most=2, request_seconds=1)
    target = FencedVectors(database)
    assert await target.write(key, 1, uuid4(), change(suffix, a="one"))
    for away, back in ((server.pause, server.resume), (server.stop, server.start)):
        away()
        with pytest.raises(LedgerError, match="Qdrant does not answer") as error:
            await target.applied(key)
        assert "hush" not in f"{error.value!r} {error.value.__cause__!r}"
        back()
        assert await target.applied(key) == 1
    assert await contents(target, suffix, key, "a") == ["one"]
    await database.close()
    wrong = FencedVectors(QdrantDatabase(QdrantAddress.parse(server.url, "wrong"), most=1))
    with pytest.raises(LedgerError, match=r"is refused by Qdrant\. Check QDRANT_API_KEY"):
        await wrong.applied(key)
    await wrong.close()


async def test_a_server_that_hangs_is_given_up_and_then_left_alone_until_it_goes_on(
    started: Any, key: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
    server = started("qdrant", lambda: LastingStandIn("hush"))
    database = QdrantDatabase(QdrantAddress.parse(server.url, "hush"), most=2)
    target = FencedVectors(database)
    assert await target.write(key, 1, uuid4(), change(suffix, a="one"))
    server.pause()
    for failed in await asyncio.gather(*(target.applied(key) for _ in range(5)), return_exceptions=True):
        assert isinstance(failed, LedgerError)
        assert "Qdrant does not answer" in failed.reason
    server.resume()
    # Nobody asks it yet.
    with pytest.raises(LedgerError, match="Qdrant does not answer"):
        await target.applied(key)
    await database.close()


async def test_a_server_that_is_too_old_is_refused(
    started: Any, key: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cragside.store.storages.qdrant import fence

    server = started("qdrant", QdrantStandIn)
    target = FencedVectors(QdrantDatabase(QdrantAddress.parse(server.url), most=1))
    with monkeypatch.context() as patch:
        patch.setattr(fence, "_OLDEST", (99, 0))
        with pytest.raises(LedgerError, match=r"needs Qdrant 99\.0 or later"):
            await target.write(key, 1, uuid4(), change(suffix, a="one"))
    assert await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.close()
