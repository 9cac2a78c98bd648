"""Exchanges on the embedded store: taken in, indexed by the worker, recalled in every mode."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.exchange import Exchange
from cragside.domain.query import Mode
from cragside.settings import Settings

AT = datetime(2026, 2, 7, 14, 30, 0, tzinfo=UTC)
REDIS = Exchange(
    "Which port did we configure for Redis?", "Redis listens on port 6380, since 6379 was taken.", "devops", AT
)
OTTERS = Exchange(
    "What do sea otters eat?", "Sea otters eat sea urchins, crabs and mussels, cracked on a stone.", at=AT
)


@pytest.fixture
async def container(tmp_path):
    container = Container(Settings(home=tmp_path))
    yield container
    await container.close()


async def test_two_exchanges_within_one_second_are_both_found_in_every_mode(container):
    first = await container.memory.remember(REDIS, workspace="bot")
    second = await container.memory.remember(OTTERS, workspace="bot")
    assert (first.indexed, second.indexed) == (True, True)
    assert first.document_id != second.document_id
    again = await container.memory.remember(REDIS, workspace="bot")
    assert (again.indexed, again.reason) == (False, "known")
    await container.worker().run(until_idle=True, sweep=False)
    for mode in get_args(Mode):
        found = await container.memory.recall("Which port does Redis use?", workspace="bot", mode=mode, limit=1)
        assert re.search(
            rf"^# Relevant Memory\n.*\n<memory-(\w+)>\n{re.escape(REDIS.text)}\n</memory-\1>\Z", found.text
        ), mode
    assert (await container.memory.recall("Redis?", workspace="other")).text == ""


async def test_the_same_exchange_at_another_time_is_remembered_once(container):
    remember = container.memory.remember
    first = await remember(OTTERS, workspace="bot")
    for later in (AT + timedelta(seconds=1), AT + timedelta(minutes=5), AT + timedelta(days=2)):
        again = await remember(replace(OTTERS, at=later), workspace="bot")
        assert (again.indexed, again.reason, again.document_id) == (False, "known", first.document_id)
    assert (await remember(replace(OTTERS, at=AT + timedelta(days=2)), workspace="other")).indexed
    assert (await remember(replace(OTTERS, assistant=f"{OTTERS.assistant} They float."), workspace="bot")).indexed
    await container.memory.forget(first.document_id, workspace="bot")
    assert (await remember(replace(OTTERS, at=AT + timedelta(minutes=5)), workspace="bot")).indexed


async def test_the_same_exchange_twice_at_once_is_remembered_once(container):
    several = [replace(OTTERS, at=AT + timedelta(minutes=minutes)) for minutes in range(4)]
    told = await asyncio.gather(*(container.memory.remember(each, workspace="bot") for each in several))
    assert sorted(each.reason for each in told) == ["", "known", "known", "known"]
    assert (await container.memory.exchanges(workspace="bot"))[1] == 1


async def test_a_cached_search_is_repeated_after_the_store_has_changed(container):
    async def found():
        searching = container.retriever
        search = await searching.search_for("sea otters urchins crabs mussels", workspace="bot", threshold=0.5)
        return len(await searching.search(search, workspace="bot", compress=True))

    assert await found() == 0
    await container.intake.text(SourceText("otters.md", OTTERS.assistant), workspace="bot")
    await container.worker().run(until_idle=True, sweep=False)
    assert await found() == 1
    assert await found() == 1
