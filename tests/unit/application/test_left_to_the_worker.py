"""A text that does not become searchable at once waits for a worker, and nothing of it is lost."""

import asyncio
import errno
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import QueueStats
from cragside.store import part_indexer
from cragside.store.embeddings import CachedEmbedder
from cragside.store.ledger import Ledger
from cragside.store.queues.sql import TaskQueue
from tests.indexing import found
from tests.knowledge import Knowledge
from tests.places import forked

OTTER = SourceText("otter.md", "Sea otters hold hands while they sleep.")
QUESTION = "What do sea otters hold?"


class Elsewhere:
    """A model on another host."""

    name = "elsewhere"
    dimensions = 2
    in_process = False

    async def embed(self, texts: Any) -> Any:
        return np.full((len(texts), 2), 0.5**0.5, np.float32)


async def queued_then_done(knowledge: Knowledge) -> None:
    """Check that both tasks wait, and that a worker does them."""
    assert await knowledge.queue.stats() == QueueStats(pending=2, processing=0, dead=0)
    assert await knowledge.worker().run(until_idle=True, sweep=False) == {"done": 2}
    assert await found(knowledge.container, QUESTION) == [OTTER.text]


async def test_with_a_model_on_another_host_a_text_waits_for_a_worker(tmp_path: Path) -> None:
    async with Knowledge(tmp_path, members={"embedder": Elsewhere()}) as knowledge:
        accepted = await knowledge.container.intake.text(OTTER, workspace="w")
        assert accepted.record.status == "pending"
        await queued_then_done(knowledge)


async def test_a_long_text_waits_for_a_worker(tmp_path: Path) -> None:
    async with Knowledge(tmp_path) as knowledge:
        for length, status in ((100_000, "searchable"), (100_001, "pending")):
            long = SourceText(f"{length}.md", ("Sea otters hold hands. " * 5_000)[: length - 1] + ".")
            accepted = await knowledge.container.intake.text(long, workspace="w")
            assert (accepted.record.characters, accepted.record.status) == (length, status)
        waiting = {task.stage for task in accepted.tasks}
        assert waiting == {"embed", "enrich"}


async def test_what_others_have_under_way_leaves_the_rest_to_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going_on, keep = asyncio.Event(), CachedEmbedder.keep
    begun: list[object] = []

    async def held(self: CachedEmbedder, *arguments: Any) -> None:
        begun.append(self)
        await going_on.wait()
        await keep(self, *arguments)

    def long(name: str) -> SourceText:
        return SourceText(name, f"Sea otters hold hands, says {name}. " + "Kelp grows. " * 3_300)

    async with Knowledge(tmp_path) as knowledge:
        take = knowledge.container.intake.text
        with monkeypatch.context() as patched:
            patched.setattr(CachedEmbedder, "keep", held)
            waiting = [asyncio.create_task(take(long(name), workspace=name)) for name in ("a", "b")]
            while len(begun) < 2:
                await asyncio.sleep(0.01)
            assert (await take(long("c"), workspace="c")).record.status == "pending"
            going_on.set()
            assert [each.record.status for each in await asyncio.gather(*waiting)] == ["searchable"] * 2
        assert (await take(long("d"), workspace="c")).record.status == "searchable"


@pytest.mark.parametrize(
    "failure",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), ServiceUnavailable("knowledge_base", "full"), ValueError()],
)
async def test_after_a_failure_a_text_waits_for_a_worker(
    tmp_path: Path, failure: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise failure

    async with Knowledge(tmp_path) as knowledge:
        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "enter_vectors", fail)
            accepted = await knowledge.container.intake.text(OTTER, workspace="w")
        assert (accepted.record.status, len(accepted.tasks)) == ("pending", 2)
        assert f"A worker makes {accepted.record.id} searchable" in caplog.text
        await queued_then_done(knowledge)


async def test_what_takes_too_long_waits_for_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def slow(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with Knowledge(tmp_path) as knowledge:
        await knowledge.container.workspaces.prepare("w")
        with monkeypatch.context() as patched:
            patched.setattr(part_indexer, "_AT_ONCE_SECONDS", 1.0)
            patched.setattr(CachedEmbedder, "keep", slow)
            accepted = await knowledge.container.intake.text(OTTER, workspace="w")
        assert begun.is_set()
        assert accepted.record.status == "pending"
        await queued_then_done(knowledge)


async def test_a_client_that_leaves_meanwhile_leaves_the_tasks_in_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def slow(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with Knowledge(tmp_path) as knowledge:
        with monkeypatch.context() as patched:
            patched.setattr(CachedEmbedder, "keep", slow)
            sending = asyncio.create_task(knowledge.container.intake.text(OTTER, workspace="w"))
            await begun.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        await queued_then_done(knowledge)


def _killed_at(owner: type, step: str, home: Path) -> None:
    """Accept a text in a process that is killed when it comes to a step."""

    async def kill(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, step, kill)
    asyncio.run(Knowledge(home).container.intake.text(OTTER, workspace="w"))


@pytest.mark.parametrize(
    ("owner", "step", "status", "tasks"),
    [(Ledger, "enter_vectors", "pending", 2), (TaskQueue, "send", "searchable", 1)],
)
async def test_a_kill_before_the_tasks_are_queued_loses_nothing(
    tmp_path: Path, owner: type, step: str, status: str, tasks: int
) -> None:
    process = forked(_killed_at, owner, step, tmp_path)
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == -signal.SIGKILL
    async with Knowledge(tmp_path) as knowledge:
        library = (await knowledge.container.workspaces.open("w")).documents
        ((record,), _), stats = await library.documents(), await knowledge.queue.stats()
        assert (record.status, stats.pending) == (status, 0)
        assert await found(knowledge.container, QUESTION) == ([OTTER.text] if status == "searchable" else [])
        assert await knowledge.worker().run(until_idle=True) == {"done": tasks}
        assert [each.status for each in (await library.documents())[0]] == ["enriched"]
        assert await found(knowledge.container, QUESTION) == [OTTER.text]
