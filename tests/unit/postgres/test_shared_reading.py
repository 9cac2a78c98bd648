"""Preferences in PostgreSQL: the requests of a moment share one statement."""

import asyncio
import json
from typing import Any

import pytest

from cragside.adapters.postgres_preferences import PostgresPreferences
from cragside.domain.errors import ServiceUnavailable


class Tables:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.failure: OSError | None = None
        self.go_on = asyncio.Event()

    async def all(self, _: str) -> list[tuple[str, str]]:
        self.asked += 1
        await self.go_on.wait()
        if self.failure:
            raise self.failure
        return [("w", json.dumps({"chunk_tokens": self.asked}))]


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def preferences(tables: Any) -> PostgresPreferences:
    return PostgresPreferences(tables)


async def test_a_hundred_requests_at_once_are_one_statement(tables: Tables, preferences: PostgresPreferences) -> None:
    requests = [asyncio.create_task(preferences.changes("w")) for _ in range(100)]
    await asyncio.sleep(0)
    tables.go_on.set()
    assert await asyncio.gather(*requests) == [{"chunk_tokens": 1}] * 100
    assert tables.asked == 1


async def test_the_first_one_may_give_up(tables: Tables, preferences: PostgresPreferences) -> None:
    first, second = (asyncio.create_task(preferences.changes("w")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    tables.go_on.set()
    assert await second == {"chunk_tokens": 1}


async def test_all_are_told_of_a_failure_and_the_next_one_asks_again(
    tables: Tables, preferences: PostgresPreferences
) -> None:
    tables.failure = OSError("it is away")
    tables.go_on.set()
    for failed in await asyncio.gather(*(preferences.changes("w") for _ in range(3)), return_exceptions=True):
        assert isinstance(failed, ServiceUnavailable)
    tables.failure = None
    assert await preferences.changes("w") == {"chunk_tokens": 2}
