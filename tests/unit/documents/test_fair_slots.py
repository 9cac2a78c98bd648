"""Whose file is read next, when one tenant brings many that take long."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.fair_slots import FairSlots
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable

WEIR = (Path(__file__).parents[2] / "data" / "weir.docx").read_bytes()
EXHAUSTED = pytest.mark.attack("exhausted resources")


class Slow:
    """Holds up the reading of files named `slow...`, in the thread that reads them."""

    def __init__(self, loader: FileLoader) -> None:
        self.released = threading.Event()
        self.begun: list[str] = []
        self._read = loader._parsers.read
        loader._parsers.read = self.read  # type: ignore[method-assign]

    def read(self, kind: Any, content: bytes, origin: Any) -> Any:
        self.begun.append(origin.name)
        if origin.name.startswith("slow"):
            self.released.wait(20)
        return self._read(kind, content, origin)


@pytest.fixture
async def loader() -> AsyncIterator[FileLoader]:
    made = FileLoader(patience=20)
    yield made
    await made.close()


def reading(loader: FileLoader, name: str, workspace: str) -> "asyncio.Task[SourceText]":
    return asyncio.create_task(loader.load(WEIR, name=name, workspace=workspace))


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@EXHAUSTED
async def test_eight_slow_files_of_one_tenant_do_not_keep_anothers_waiting(loader: FileLoader) -> None:
    slow = Slow(loader)
    many = [reading(loader, f"slow{number}.docx", "greedy") for number in range(8)]
    await until(lambda: len(slow.begun) == 2)
    assert (await reading(loader, "weir.docx", "modest")).title == "Handbook of the Weir"
    assert not any(task.done() for task in many)
    slow.released.set()
    assert len({source.name for source in await asyncio.gather(*many)}) == 8


@EXHAUSTED
async def test_many_greedy_tenants_delay_another_by_at_most_one_turn(loader: FileLoader) -> None:
    slow = Slow(loader)
    many = [reading(loader, f"slow{number}.docx", f"greedy{number % 3}") for number in range(30)]
    await until(lambda: len(slow.begun) == 3)
    modest = reading(loader, "weir.docx", "modest")
    await asyncio.sleep(0)
    slow.released.set()
    await modest
    assert slow.begun.index("weir.docx") <= 6
    await asyncio.gather(*many)


@EXHAUSTED
async def test_a_file_that_waits_too_long_is_refused_without_effect_on_others() -> None:
    loader = FileLoader(patience=0.05)
    slow = Slow(loader)
    many = [reading(loader, f"slow{number}.docx", f"greedy{number}") for number in range(3)]
    await until(lambda: len(slow.begun) == 3)
    for _ in range(3):
        with pytest.raises(ServiceUnavailable, match="Send the file again in a few seconds"):
            await reading(loader, "weir.docx", "modest")
    slow.released.set()
    await asyncio.gather(*many)
    assert (await reading(loader, "weir.docx", "modest")).name == "weir.docx"
    await loader.close()


async def test_a_client_that_leaves_does_not_give_its_place_to_another_while_its_file_is_read(
    loader: FileLoader,
) -> None:
    slow = Slow(loader)
    many = [reading(loader, f"slow{number}.docx", f"greedy{number}") for number in range(3)]
    await until(lambda: len(slow.begun) == 3)
    for task in many:
        task.cancel()
    modest = reading(loader, "weir.docx", "modest")
    await asyncio.wait([modest], timeout=0.05)
    assert "weir.docx" not in slow.begun
    slow.released.set()
    await modest


async def test_a_slot_granted_to_a_cancelled_waiter_is_not_lost() -> None:
    turns = FairSlots(1)
    await turns.take("a", patience=1)
    leaving, staying = (asyncio.create_task(turns.take("b", patience=1)) for _ in range(2))
    await asyncio.sleep(0)
    turns.give_back("a")
    leaving.cancel()
    await staying
    turns.give_back("b")
    async with turns.turn("c", patience=0):
        with pytest.raises(TimeoutError):
            await turns.take("d", patience=0)
    await turns.take("d", patience=0)
