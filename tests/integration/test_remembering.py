"""Exchanges on the embedded store: taken in, indexed by the worker, recalled in every mode."""

import re
from datetime import UTC, datetime
from typing import get_args

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.exchange import Exchange
from cragside.domain.search import Mode
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
