import asyncio
from typing import Any

import pytest

from cragside.application.attempts import DESCRIBED_CHARACTERS, Indexer
from cragside.domain.document import DocType
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Passage, Task
from tests.libraries import EchoAnnotator, MemoryWorkspaces, record

EMBED = Task("library", "doc-1", "sha", 0, "embed")
ENRICH = Task("library", "doc-1", "sha", 0, "enrich")
LATER = Task("library", "doc-1", "sha", 1, "enrich")
PASSAGES = [Passage(f"p-{n}", "doc-1", part=n // 2, index=n, text=f"text {n}") for n in range(4)]


async def test_an_embedding_task_makes_the_part_searchable_and_nothing_else() -> None:
    workspaces = MemoryWorkspaces()
    await Indexer(workspaces, EchoAnnotator()).do(EMBED)
    assert workspaces.log == [("embed", EMBED)]


async def test_an_enriching_task_describes_each_passage_then_extends_the_graph() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    workspaces.record = record(doc_type="email")
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    tier2 = [{"entities": [], "keywords": ["text", str(n)], "language": None} for n in (0, 1)]
    tier3 = {"summary": "text 0\ntext 1", "type": "email"}
    assert workspaces.log == [("begin", ENRICH), ("annotate", ENRICH, tier2, tier3), ("graph", ENRICH)]


async def test_the_document_is_described_once_with_its_first_part() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    await Indexer(workspaces, EchoAnnotator()).do(LATER)
    (_, _, tier2, tier3) = workspaces.log[1]
    assert ([each["keywords"][1] for each in tier2], tier3) == (["2", "3"], None)


async def test_a_model_reads_only_the_beginning() -> None:
    long = Passage("p", "doc-1", part=0, index=0, text="x" * 3 * DESCRIBED_CHARACTERS)
    workspaces = MemoryWorkspaces(passages=[long])
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    assert len(workspaces.log[1][3]["summary"]) == DESCRIBED_CHARACTERS


async def test_a_task_with_nothing_left_to_do_asks_no_model() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    workspaces.open_for_enrichment = False
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    assert workspaces.log == [("begin", ENRICH)]


class Silent(EchoAnnotator):
    """A model host that is down, or that takes its time."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.asked = asyncio.Event()
        self._failure = failure

    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        self.asked.set()
        if self._failure is not None:
            raise self._failure
        await asyncio.sleep(60)
        return {}


async def test_a_part_that_fails_to_be_enriched_waits_again() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    with pytest.raises(ServiceUnavailable, match="down"):
        await Indexer(workspaces, Silent(ServiceUnavailable("model_host", "It is down."))).do(ENRICH)
    assert workspaces.log == [("begin", ENRICH), ("back", ENRICH)]


async def test_a_part_that_is_broken_off_waits_again() -> None:
    workspaces, annotator = MemoryWorkspaces(passages=PASSAGES), Silent()
    doing = asyncio.create_task(Indexer(workspaces, annotator).do(ENRICH))
    await annotator.asked.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert workspaces.log == [("begin", ENRICH), ("back", ENRICH)]


async def test_a_failure_is_reported_even_if_the_store_cannot_mark_the_part_as_pending() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)

    async def give_back(task: Task | None = None) -> None:
        raise ServiceUnavailable("knowledge_base", "It is down, too.")

    workspaces.give_back = give_back  # type: ignore[method-assign]
    with pytest.raises(ServiceUnavailable) as failure:
        await Indexer(workspaces, Silent(ServiceUnavailable("model_host", "It is down."))).do(ENRICH)
    assert failure.value.component == "model_host"


async def test_a_document_deleted_during_annotation_is_not_a_failure() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    workspaces.record = None
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    assert workspaces.log[1][3] is None
