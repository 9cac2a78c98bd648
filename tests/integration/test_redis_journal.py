"""A change of values reaches Redis whole, in order and once, whatever process stops in between."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import orjson
import pytest
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import WatchError

from cragside.databases import gate
from cragside.databases import redis as connections
from cragside.databases.redis import RedisDatabase, RedisFailure
from cragside.databases.server_addresses import RedisAddress
from cragside.store.errors import LedgerError
from cragside.store.outside.redis import RedisListing, RedisValues
from tests.services.redis_server import RedisServer

KEY = "w0123456789abcdef"


def values(**texts: str | None) -> dict[str, Any]:
    """A change of one namespace."""
    return {"full_docs": {key: None if text is None else {"content": text} for key, text in texts.items()}}


@pytest.fixture
async def database(redis_database: str) -> AsyncIterator[RedisDatabase]:
    database = RedisDatabase(RedisAddress.parse(redis_database), most=3)
    yield database
    await database.close()


@pytest.fixture
def target(database: RedisDatabase) -> RedisValues:
    return RedisValues(database)


@pytest.fixture
async def client(redis_database: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_database, decode_responses=True) as client:
        yield client


async def contents(target: RedisValues, *ids: str) -> list[str | None]:
    """The texts of values."""
    rows = await target.read(KEY, "full_docs", ids)
    return [None if row is None else orjson.loads(row)["content"] for row in rows]


async def test_a_change_is_written_once(target: RedisValues) -> None:
    first = uuid4()
    assert await target.write(KEY, 1, first, values(a="one"))
    assert await target.write(KEY, 1, first, values(a="again"))
    assert await contents(target, "a", "b") == ["one", None]
    assert await target.applied(KEY) == 1
    assert await target.write(KEY, 2, uuid4(), values(a=None, b="two"))
    assert await contents(target, "a", "b") == [None, "two"]


async def test_a_late_writer_and_one_that_comes_too_early_change_nothing(target: RedisValues) -> None:
    await target.write(KEY, 1, uuid4(), values(a="one"))
    await target.write(KEY, 2, uuid4(), values(b="two"))
    assert not await target.write(KEY, 1, uuid4(), values(a="late"))
    assert not await target.write(KEY, 2, uuid4(), values(a="late"))
    assert not await target.write(KEY, 4, uuid4(), values(a="early"))
    assert await contents(target, "a") == ["one"]


class Stopped(RedisValues):
    """Lets another one write between its look at the fence and its own transaction."""

    other: RedisValues | None = None

    async def _prepare(self, pipe: Pipeline, key: str, change: dict[str, Any]) -> None:
        other, self.other = self.other, None
        if other is not None:
            assert await other.write(key, 1, uuid4(), values(a="other"))
        await super()._prepare(pipe, key, change)


async def test_a_writer_that_was_stopped_in_its_transaction_changes_nothing(
    database: RedisDatabase, target: RedisValues
) -> None:
    stopped = Stopped(database)
    stopped.other = target
    assert not await stopped.write(KEY, 1, uuid4(), values(a="stopped", b="stopped"))
    assert await contents(target, "a", "b") == ["other", None]


async def test_a_value_keeps_the_time_of_its_making(target: RedisValues, client: Redis) -> None:
    await target.write(KEY, 1, uuid4(), {"full_docs": {"a": {"content": "one", "create_time": 7, "update_time": 8}}})
    await target.write(KEY, 2, uuid4(), values(a="two"))
    row = orjson.loads(await client.get(f"{KEY}_full_docs:a"))
    assert (row["content"], row["create_time"], row["_id"]) == ("two", 7, "a")
    assert row["update_time"] > 8


async def test_a_dropped_share_is_gone_and_stays_so(
    database: RedisDatabase, target: RedisValues, client: Redis
) -> None:
    listing, neighbour = RedisListing(database), f"{KEY[:-1]}0"
    await target.write(KEY, 1, uuid4(), values(**{f"k{number}": "x" for number in range(1500)}))
    await target.write(neighbour, 1, uuid4(), values(a="stays"))
    row = {"status": "processed", "created_at": "2026-01-01T00:00:00+00:00", "file_path": "a.md"}
    await listing.write(KEY, 1, uuid4(), {"rows": {"doc": row}})
    await target.drop(KEY)
    indexes = f"{KEY}_doc_status__sched"
    listed = [f"{KEY}_doc_status:doc", f"{indexes}:basename:a.md", f"{indexes}:status:processed"]
    assert sorted(await client.keys(f"{KEY}*")) == listed
    await listing.drop(KEY)
    assert not await target.write(KEY, 2, uuid4(), values(a="late"))
    assert not await listing.write(KEY, 2, uuid4(), {"rows": {"doc": row}})
    assert await client.keys(f"{KEY}*") == []
    assert await client.ttl(f"cragside:fence:{KEY}:kv") > 0
    assert await client.exists(f"{neighbour}_full_docs:a")


async def test_a_document_is_in_the_indexes_by_which_lightrag_finds_it(database: RedisDatabase, client: Redis) -> None:
    listing, indexes = RedisListing(database), f"{KEY}_doc_status__sched"
    made = "2026-01-01T00:00:00+00:00"
    row = {"status": "pending", "created_at": made, "file_path": "a.md", "error_msg": None}
    await listing.write(KEY, 1, uuid4(), {"rows": {"doc": row}, "steps": {}})
    assert await client.zrange(f"{indexes}:status:pending", 0, -1) == [f"{made}|doc"]
    assert await client.smembers(f"{indexes}:basename:a.md") == {"doc"}
    await listing.write(KEY, 2, uuid4(), {"rows": {}, "steps": {"doc": {"status": "failed"}, "gone": {"status": "x"}}})
    moved = {**row, "file_path": "b.md", "created_at": "2027-01-01T00:00:00+00:00"}
    await listing.write(KEY, 3, uuid4(), {"rows": {"doc": moved}, "steps": {"doc": {"status": "processed"}}})
    told = orjson.loads(await client.get(f"{KEY}_doc_status:doc"))
    assert (told["status"], told["created_at"], told["file_path"]) == ("processed", made, "b.md")
    expected = [f"{KEY}_doc_status:doc", f"{indexes}:basename:b.md", f"{indexes}:status:processed"]
    assert sorted(await client.keys(f"{KEY}*")) == expected
    await listing.write(KEY, 4, uuid4(), {"rows": {"doc": None}})
    assert await client.keys(f"{KEY}*") == []


async def test_a_dropped_connection_heals(target: RedisValues, client: Redis) -> None:
    await target.write(KEY, 1, uuid4(), values(a="one"))
    await client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert await contents(target, "a") == ["one"]
    await client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert await target.write(KEY, 2, uuid4(), values(a="two"))


async def test_a_server_that_is_away_is_told_without_its_password_and_is_used_when_it_is_back(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.2)
    server = started("redis", RedisServer)
    database = RedisDatabase(RedisAddress.parse(server.uri), most=2, command_seconds=0.2)
    target = RedisValues(database)
    await target.write(KEY, 1, uuid4(), values(a="one"))
    server.pause()
    with pytest.raises(LedgerError, match="does not answer") as error:
        await target.applied(KEY)
    server.resume()
    assert await contents(target, "a") == ["one"]
    server.kill()
    with pytest.raises(LedgerError, match="does not answer"):
        await target.applied(KEY)
    password = server.uri.partition("@")[0].rpartition(":")[2]
    assert password not in f"{error.value}{error.value.reason}"
    await database.close()


async def test_a_wrong_password_is_told(redis_database: str) -> None:
    place = redis_database.rpartition("@")[2]
    for uri in (f"redis://:wrong@{place}", f"redis://{place}"):
        database = RedisDatabase(RedisAddress.parse(uri), most=1)
        with pytest.raises(LedgerError, match=r"is refused by Redis\. Check the user") as error:
            await RedisValues(database).applied(KEY)
        assert "password" in error.value.reason
        assert "wrong@" not in f"{error.value}{error.value.reason}"
        await database.close()


async def test_a_server_that_hangs_is_given_up_soon_and_then_left_alone_until_it_goes_on(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PAUSE_SECONDS", 1000.0)
    server = started("redis", RedisServer)
    database = RedisDatabase(RedisAddress.parse(server.uri), most=2)
    target = RedisValues(database)
    await target.write(KEY, 1, uuid4(), values(a="one"))
    server.pause()
    async with asyncio.timeout(gate.SILENCE_SECONDS + gate.SIGN_SECONDS + 1):
        for failed in await asyncio.gather(*(target.applied(KEY) for _ in range(5)), return_exceptions=True):
            assert isinstance(failed, LedgerError)
            assert "Redis does not answer" in failed.reason
    async with asyncio.timeout(0.5):
        for _ in range(5):
            with pytest.raises(LedgerError, match="does not answer"):
                await target.write(KEY, 2, uuid4(), values(a="two"))
    server.resume()
    database._gate._next_try = 0.0
    assert await contents(target, "a") == ["one"]
    assert await target.write(KEY, 2, uuid4(), values(a="two"))
    await database.close()


async def test_a_slow_command_of_a_server_that_lives_is_no_outage(redis_database: str) -> None:
    database = RedisDatabase(RedisAddress.parse(redis_database), most=2)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(database.run(lambda client: client.blpop(["never"])), 3.5)
    assert await RedisValues(database).applied(KEY) == 0
    await database.close()


async def test_a_key_that_always_changes_is_given_up(database: RedisDatabase) -> None:
    tries = 0

    async def overtaken(_: Redis) -> None:
        nonlocal tries
        tries += 1
        await asyncio.sleep(0)
        raise WatchError

    async with asyncio.timeout(5):
        with pytest.raises(RedisFailure, match="others kept changing"):
            await database.run(overtaken)
    assert tries > 1
