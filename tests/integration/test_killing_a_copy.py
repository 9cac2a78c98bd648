"""A copy that is killed leaves its target as it was, and can be run again."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from cragside.bootstrap import Container
from cragside.composition.store_files import Copies
from cragside.domain.document import SourceText
from tests.places import FORK, KINDS, Place, forked, places


@pytest.fixture(params=KINDS)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    with places(request.param, tmp_path, request) as make:
        yield make("source"), make("target")


async def bring(place: Place, *texts: str) -> None:
    container = Container(place.settings())
    library = (await container.workspaces.open("w")).documents
    for text in texts:
        await container.queue.send((await library.accept(SourceText(f"{text[:9]}.md", text))).tasks)
    await container.worker().run(until_idle=True)
    await container.close()


async def copied(source: Place, target: Place, told: Connection | None = None) -> int:
    def progress(documents: int) -> None:
        if told and documents > 8:  # some rows are written by then
            told.send(documents)
            time.sleep(60)  # until it is killed

    containers = Container(source.settings()), Container(target.settings())
    try:
        return await Copies(*containers).copy("w", replace=True, progress=progress)
    finally:
        for container in containers:
            await container.close()


def copies(source: Place, target: Place, told: Connection) -> None:
    asyncio.run(copied(source, target, told))


async def names(place: Place) -> list[str]:
    container = Container(place.settings())
    try:
        return await container.workspaces.names()
    finally:
        await container.close()


def contents(place: Place) -> dict[str, Any]:
    """All that a place holds."""
    return place.contents("w")


def killed_meanwhile(source: Place, target: Place) -> None:
    here, there = FORK.Pipe()
    process = forked(copies, source, target, there)
    assert here.poll(120)
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def test_the_target_is_as_it_was_and_the_copy_can_be_run_again(both: tuple[Place, Place]) -> None:
    source, target = both
    texts = [f"Note {number} tells that Ada built bridge {number} over the Coquet." for number in range(10)]
    asyncio.run(bring(source, *texts))
    expected = contents(source)

    killed_meanwhile(source, target)
    assert asyncio.run(names(target)) == []
    assert asyncio.run(copied(source, target)) == len(texts)
    assert contents(target) == expected

    asyncio.run(bring(source, "Bella built a bridge too."))
    killed_meanwhile(source, target)
    assert contents(target) == expected
    assert asyncio.run(copied(source, target)) == len(texts) + 1
    assert contents(target) == contents(source) != expected
    assert asyncio.run(names(target)) == ["w"]
