from cragside.application.indexer import Indexer
from cragside.domain.indexing import Passage, Task
from cragside.ports.annotator import DESCRIBED_CHARACTERS
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


async def test_a_model_reads_no_more_than_the_beginning() -> None:
    long = Passage("p", "doc-1", part=0, index=0, text="x" * 3 * DESCRIBED_CHARACTERS)
    workspaces = MemoryWorkspaces(passages=[long])
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    assert len(workspaces.log[1][3]["summary"]) == DESCRIBED_CHARACTERS


async def test_a_task_with_nothing_left_to_do_asks_no_model() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    workspaces.open_for_enrichment = False
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    assert workspaces.log == [("begin", ENRICH)]


async def test_a_document_that_goes_while_it_is_described_is_no_failure() -> None:
    workspaces = MemoryWorkspaces(passages=PASSAGES)
    workspaces.record = None
    await Indexer(workspaces, EchoAnnotator()).do(ENRICH)
    assert workspaces.log[1][3] is None
