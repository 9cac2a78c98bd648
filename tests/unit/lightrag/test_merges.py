"""Parts that wait to be written are written together, and one by one where that fails."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.ports.embedder import Embedder
from cragside.store import part_indexer
from cragside.store.chunking import StoredPart
from cragside.store.ledger import Ledger
from cragside.store.merges import GraphShare, Merges, Share
from tests.embedded_workspaces import embedded_workspaces
from tests.fakes import WordGrader
from tests.indexing import LONG, text


def share(name: str, passages: int = 1) -> Share:
    part = StoredPart(1, 0, name, 0, passages - 1, embedded=True, enrichment="processing")
    return Share(Task("w", name, "hash", 0, "enrich"), part)


class Room:
    """Gives no ledger, but waits until it is `free`."""

    def __init__(self) -> None:
        self.asked, self.free = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Any]:
        self.asked.set()
        await self.free.wait()
        yield None


class Merger:
    """Merges what it is given when it may, and fails for some."""

    def __init__(self, failures: dict[str, Exception | None] | None = None) -> None:
        self.calls: list[str] = []
        self.free = asyncio.Event()
        self._failures = failures or {}

    async def __call__(self, _: Ledger, shares: Sequence[Share]) -> bool:
        names = "".join(each.part.key for each in shares)
        self.calls.append(names)
        await self.free.wait()
        for name in self._failures.keys() & set(names):
            if failure := self._failures[name]:
                raise failure
            return False
        return True


async def run(merger: Merger, *shares: Share) -> list[BaseException | None]:
    """Merge shares, of which the first is under way when the others come."""
    merges = Merges[Share](nullcontext, 40)
    tasks = [asyncio.create_task(merges.run(each, merger)) for each in shares]
    while not merger.calls:
        await asyncio.sleep(0)
    merger.free.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_comes_during_a_merge_is_merged_together_after_it() -> None:
    merger = Merger()
    assert await run(merger, *map(share, "abcd")) == [None] * 4
    assert merger.calls == ["a", "bcd"]


async def test_what_comes_while_the_lease_is_awaited_is_written_together() -> None:
    room, merger = Room(), Merger()
    merges = Merges[Share](room.held, 40)
    merger.free.set()
    tasks = [asyncio.create_task(merges.run(each, merger)) for each in map(share, "abc")]
    await room.asked.wait()
    room.free.set()
    await asyncio.gather(*tasks)
    assert merger.calls == ["abc"]


async def test_no_more_passages_are_merged_together_than_may_be() -> None:
    merger = Merger()
    await run(merger, share("a"), share("b", 20), share("c", 20), share("d", 20), share("e", 500), share("f"))
    assert merger.calls == ["a", "bc", "d", "e", "f"]


@pytest.mark.parametrize("failure", [None, ServiceUnavailable("extractor", "The model is silent.")])
async def test_each_is_merged_alone_when_they_cannot_be_merged_together(failure: Exception | None) -> None:
    merger = Merger({"c": failure})
    assert await run(merger, *map(share, "abcd")) == [None, None, failure, None]
    assert merger.calls == ["a", "bcd", "b", "c", "d"]


async def test_a_task_that_is_cancelled_leaves_the_others_to_merge() -> None:
    merges, merger = Merges[Share](nullcontext, 40), Merger()
    first, second, third = (asyncio.create_task(merges.run(share(name), merger)) for name in "abc")
    while not merger.calls:
        await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    await asyncio.wait([first, second])
    merger.free.set()
    await third
    assert merger.calls == ["a", "c"]


async def embedded(_: str | None) -> Embedder:
    return WordLlamaEmbedder()


async def graph_of(home: Path, *, together: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Any]:
    """Sizes of the merges of four documents, and the entities with their connections and documents."""
    workspaces = embedded_workspaces(home, open_embedder=embedded, ranker=WordGrader(), chunk_words=(30, 0))
    workspace = await workspaces.open("w")
    names = ("pier", "dock", "quay", "lock")
    accepted = [await workspace.documents.accept(text(f"{each}.md", LONG.replace("bridge", each))) for each in names]
    sizes: list[int] = []
    merge = part_indexer._merge

    async def counted(store: Any, ledger: Ledger, shares: Sequence[GraphShare]) -> bool:
        sizes.append(len(shares))
        return await merge(store, ledger, shares)

    monkeypatch.setattr(part_indexer, "_merge", counted)
    tasks = [task for each in accepted for task in each.tasks if task.stage == "enrich"]
    if together:
        await asyncio.gather(*(workspace.work.extend_graph(task) for task in tasks))
    else:
        for task in tasks:
            await workspace.work.extend_graph(task)
    found = await workspace.graph.search("", limit=100)
    views = [await workspace.graph.entity(each.name) for each in found]
    told = {
        (each.entity.name, each.entity.type, each.entity.mentions, each.documents, each.connections)
        for each in views
        if each
    }
    assert set(await workspace.documents.counts()) == {"enriched"}
    await workspaces.close()
    return sizes, told


async def test_documents_that_are_merged_together_give_the_graph_of_those_merged_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, told = await graph_of(tmp_path / "a", together=True, monkeypatch=monkeypatch)
    assert max(sizes) > 1
    alone, expected = await graph_of(tmp_path / "b", together=False, monkeypatch=monkeypatch)
    assert set(alone) == {1}
    assert told == expected
