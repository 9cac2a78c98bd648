"""Qdrant's points, collections and outages, beside the contract of all outside vectors (`tests.contract`).

The engine is the one inside Qdrant's client, behind HTTP: see `tests.services.qdrant_server`.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient, models
from typing_extensions import override

from cragside.databases import gate
from cragside.databases.qdrant import QdrantDatabase
from cragside.databases.server_addresses import QdrantAddress
from cragside.store.errors import LedgerError
from cragside.store.outside import qdrant as driver
from cragside.store.outside.qdrant import QdrantVectors, point_id
from cragside.store.postgres.journal import FORGET_SECONDS
from tests.contract.test_outside_vectors import SIZE, change, contents
from tests.services.qdrant_server import LastingStandIn, QdrantStandIn

pytestmark = pytest.mark.services

NORTH = [0.0, 1.0, 0.0, 0.0]


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
def target(database: QdrantDatabase) -> QdrantVectors:
    return QdrantVectors(database)


@pytest.fixture
async def client(qdrant: str) -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(url=qdrant)
    yield client
    await client.close()


class Stopped(QdrantVectors):
    """Lets others write between its look at the fences and its own requests."""

    others: Any = None

    def __init__(self, database: QdrantDatabase) -> None:
        super().__init__(database)
        self.alone = asyncio.Lock()

    @override
    async def _send(self, collection: str, operations: list[models.UpdateOperation]) -> None:
        async with self.alone:
            others, self.others = self.others, None
            if others is not None:
                await others()
        await super()._send(collection, operations)


async def test_a_writer_that_comes_after_its_store_was_removed_leaves_nothing(
    database: QdrantDatabase, target: QdrantVectors, key: str, suffix: str, client: AsyncQdrantClient
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    stopped = Stopped(database)
    stopped.others = lambda: target.drop(key)
    assert not await stopped.write(key, 2, uuid4(), change(suffix, b="Otterburn"))
    found, _ = await client.scroll(QdrantVectors.collection("entities", suffix))
    assert [point for point in found if (point.payload or {}).get("workspace_id") == key] == []
    assert "Otterburn" not in str([point.payload for point in found])


async def test_a_row_that_lightrags_own_programs_wrote_is_older_than_any_change(
    target: QdrantVectors, key: str, suffix: str, client: AsyncQdrantClient
) -> None:
    await target.write(key, 1, uuid4(), change(suffix))
    own = {"id": "a", "workspace_id": key, "content": "theirs"}
    theirs = models.PointStruct(id=point_id(key, "a"), vector=NORTH, payload=own)
    await client.upsert(QdrantVectors.collection("entities", suffix), [theirs])
    await target.write(key, 2, uuid4(), change(suffix, updated={"a": {"content": "ours"}}))
    assert await contents(target, suffix, key, "a") == ["ours"]


async def test_what_was_removed_goes_a_week_later(
    target: QdrantVectors, key: str, suffix: str, client: AsyncQdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def left() -> int:
        found, _ = await client.scroll(QdrantVectors.collection("entities", suffix))
        return sum(driver.GONE in (point.payload or {}) for point in found)

    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.write(key, 2, uuid4(), change(suffix, "a"))
    await target.write(key, 3, uuid4(), change(suffix))
    assert await left() == 1
    now = time.time()
    monkeypatch.setattr(driver.time, "time", lambda: now + FORGET_SECONDS + 2)
    await target.write(key, 4, uuid4(), change(suffix))
    assert await left() == 0


async def test_an_emptied_collection_is_noticed(
    target: QdrantVectors, key: str, suffix: str, client: AsyncQdrantClient
) -> None:
    await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await client.delete_collection(QdrantVectors.collection("chunks", suffix))
    assert await target.applied(key) == 0
    assert not await target.write(key, 2, uuid4(), change(suffix, b="two"))


async def test_a_server_that_is_away_or_hangs_is_told_and_heals(
    started: Any, key: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 0.0)
    server = started("qdrant", lambda: LastingStandIn("hush"))
    database = QdrantDatabase(QdrantAddress.parse(server.url, "hush"), most=2, request_seconds=1)
    target = QdrantVectors(database)
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
    wrong = QdrantVectors(QdrantDatabase(QdrantAddress.parse(server.url, "wrong"), most=1))
    with pytest.raises(LedgerError, match=r"is refused by Qdrant\. Check QDRANT_API_KEY"):
        await wrong.applied(key)
    await wrong.close()


async def test_a_server_that_hangs_is_given_up_and_then_left_alone_until_it_goes_on(
    started: Any, key: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
    server = started("qdrant", lambda: LastingStandIn("hush"))
    database = QdrantDatabase(QdrantAddress.parse(server.url, "hush"), most=2)
    target = QdrantVectors(database)
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
    server = started("qdrant", QdrantStandIn)
    target = QdrantVectors(QdrantDatabase(QdrantAddress.parse(server.url), most=1))
    with monkeypatch.context() as patch:
        patch.setattr(driver, "_OLDEST", (99, 0))
        with pytest.raises(LedgerError, match=r"needs Qdrant 99\.0 or later"):
            await target.write(key, 1, uuid4(), change(suffix, a="one"))
    assert await target.write(key, 1, uuid4(), change(suffix, a="one"))
    await target.close()
