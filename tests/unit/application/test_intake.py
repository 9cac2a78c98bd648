import shutil
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest

from cragside.application.allowance import Allowance, allow
from cragside.domain.document import SourceText
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Task
from cragside.domain.tokens import Limits
from cragside.ports.files import DocumentLoader, FetchedPage
from cragside.store.queues.local import FILE_NAME
from tests.knowledge import Knowledge

URL = "https://example.org/otter.txt"
# As a page in a Cyrillic encoding is served: nothing in its bytes says so.
CYRILLIC = FetchedPage(URL, "Выдра спит на спине.".encode("koi8-r"), "text/plain", charset="koi8-r")


async def test_a_page_is_read_in_the_encoding_that_its_server_names(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={URL: CYRILLIC})
    accepted = await knowledge.container.intake.page(URL, workspace="default")
    library = (await knowledge.container.workspaces.open("default")).documents
    source = await library.source(accepted.record.id)
    await knowledge.close()
    assert source is not None
    assert source.text == "Выдра спит на спине."
    assert source.metadata == {"fetchedUrl": URL, "contentType": "text/plain"}


async def test_a_document_is_kept_when_the_queue_refuses_its_tasks_and_the_failure_says_so(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path)
    broken, otter = tmp_path / FILE_NAME, SourceText("otter.txt", "Otters sleep on their backs.")
    broken.write_bytes(b"no database " * 100)
    with pytest.raises(ServiceUnavailable, match=r"is damaged .* The document itself is stored") as failure:
        await knowledge.container.intake.text(otter, workspace="default")
    assert failure.value.component == "queue"
    library = (await knowledge.container.workspaces.open("default")).documents
    record = await library.sourced("otter.txt")
    assert record is not None
    assert (record.status, record.enrichment) == ("searchable", "pending")
    broken.unlink()
    await knowledge.worker().run(until_idle=True)
    record = await library.sourced("otter.txt")
    await knowledge.close()
    assert record is not None
    assert record.status == "enriched"


async def test_adding_a_document_again_queues_tasks_that_the_queue_had_refused(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path)
    broken, otter = tmp_path / FILE_NAME, SourceText("otter.txt", "Otters sleep on their backs.")
    broken.write_bytes(b"no database " * 100)
    with pytest.raises(ServiceUnavailable):
        await knowledge.container.intake.text(otter, workspace="default")
    broken.unlink()
    acceptance = await knowledge.container.intake.text(otter, workspace="default")
    stats = await knowledge.queue.stats()
    await knowledge.close()
    assert (acceptance.outcome, stats.pending) == ("unchanged", 1)


async def test_a_deletion_that_the_full_disk_interrupts_half_way_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = Knowledge(tmp_path)
    accepted = await knowledge.container.intake.text(SourceText("otter.txt", "Otters sleep."), workspace="default")
    spare, queue, refusals = knowledge.container.spare_room, knowledge.queue, [ServiceUnavailable("queue", "full")]
    assert spare is not None
    spare.keep()
    send = queue.send

    async def full_once(tasks: Sequence[Task]) -> None:
        if refusals:
            raise refusals.pop()
        await send(tasks)

    monkeypatch.setattr(queue, "send", full_once)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Mock(free=0))
    deleted = await knowledge.container.intake.delete(accepted.record.id, workspace="default")
    again = await knowledge.container.intake.delete(accepted.record.id, workspace="default")
    await knowledge.close()
    assert (deleted, again, refusals) == (True, False, [])


class Noting(DocumentLoader):
    """Notes who takes turns."""

    def __init__(self) -> None:
        self.turns: list[str] = []

    async def load(
        self, content: bytes, *, name: str, content_type: str | None = None, workspace: str = ""
    ) -> SourceText:
        self.turns.append(workspace)
        return SourceText(name, content.decode())

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.attack("noisy neighbours")
async def test_a_token_takes_turns_as_one_whatever_its_workspaces(tmp_path: Path) -> None:
    loader = Noting()
    knowledge = Knowledge(tmp_path, members={"loader": loader})
    for holder, workspace in [("greedy", "a"), ("greedy", "b"), ("other", "c")]:
        allow(Allowance(holder, Limits()))
        await knowledge.container.intake.file(b"Otters sleep.", name="otter.txt", workspace=workspace)
    allow(None)
    await knowledge.container.intake.file(b"Otters sleep.", name="otter.txt", workspace="a")
    await knowledge.close()
    one, again, other, anybody = loader.turns
    assert one == again
    assert len({one, other, anybody}) == 3
