"""Texts, and the steps that a worker takes with them."""

from collections.abc import Sequence
from typing import Any

from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.indexing import Acceptance, Task
from cragside.store.library import Library
from cragside.store.part_indexer import PartIndexer

ARMSTRONG = "William Armstrong built Cragside in Northumberland. Joseph Swan lit Cragside with lamps."
SWAN = "Joseph Swan lived in Gateshead. William Armstrong visited Joseph Swan in Gateshead."
LONG = "\n\n".join(
    f"William Armstrong built bridge number {i} over the river Coquet in 18{i + 50}. " * 3 for i in range(9)
)
# Settings with which these texts have several passages and parts.
SMALL_PARTS = {"RAG_CHUNK_TOKENS": "60", "RAG_CHUNK_OVERLAP_TOKENS": "10", "RAG_PART_PASSAGES": "2"}


def text(name: str, content: str, **fields: Any) -> SourceText:
    return SourceText(name, content, **fields)


async def work(indexer: PartIndexer, tasks: Sequence[Task]) -> None:
    """Do tasks as a worker does."""
    for task in tasks:
        if task.stage == "embed":
            await indexer.embed(task)
        elif await indexer.begin_enrichment(task):
            await indexer.extend_graph(task)


async def take(library: Library, indexer: PartIndexer, source: SourceText) -> Acceptance:
    """Accept a text and do its tasks."""
    acceptance = await library.accept(source)
    await work(indexer, acceptance.tasks)
    return acceptance


async def delete(library: Library, indexer: PartIndexer, document_id: str) -> bool:
    """Delete a document, and its part of the graph too, which a busy machine leaves to a worker."""
    known = await library.delete(document_id)
    await work(indexer, await library.restart(failures=False))
    return known


async def found(container: Container, question: str) -> list[str]:
    """Retrieve for a question in the workspace w."""
    repository = (await container.workspaces.open("w")).passages
    return [document.content for document in await repository.retrieve(question, limit=8)]
