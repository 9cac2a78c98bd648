"""Fresh stores with the documents of an evaluation, and what the pipeline finds in them."""

import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cragside.adapters.embedded.keywords import search_query
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.evidence import Document
from cragside.domain.outcome import RagContext
from cragside.ports.search_service import SearchService
from cragside.settings import Settings

File = tuple[str, bytes]


class EmptyWeb(SearchService):
    """A web without results: the evaluation only counts whether it is asked."""

    async def search(self, query: str) -> list[dict[str, Any]]:
        return []

    async def check(self) -> None:
        """It is always there."""

    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        return search_query(query)


@asynccontextmanager
async def indexed(
    documents: Iterable[SourceText | File] = (), *, search: SearchService | None = None, **settings: int
) -> AsyncIterator[Container]:
    """Index texts, and files given as their name and content, through the real pipeline of the embedded default.

    Without `search` there is no web. Exits if a document cannot be indexed.
    """
    with tempfile.TemporaryDirectory() as home:
        container = Container(Settings.model_validate({"home": Path(home), **settings}), search=search)
        try:
            for document in documents:
                if isinstance(document, SourceText):
                    await container.intake.text(document, workspace="default")
                else:
                    name, content = document
                    await container.intake.file(content, name=name, workspace="default")
            outcomes = await container.worker().run(until_idle=True, sweep=False)
            if set(outcomes) - {"done"}:
                raise SystemExit(f"Some documents could not be indexed: {dict(outcomes)}")
            yield container
        finally:
            await container.close()


def files_in(folder: Path) -> list[File]:
    """Read the files of a folder, in the order of their names."""
    return [(file.name, file.read_bytes()) for file in sorted(folder.iterdir())]


async def ask(container: Container, question: str, earlier: Sequence[Mapping[str, str]] = ()) -> RagContext:
    """Send a question behind the earlier messages of its conversation through the `Enricher`."""
    request = {"messages": [*earlier, {"role": "user", "content": f"/rag {question}"}]}
    context = (await container.enricher.enrich(request)).rag_context
    assert context is not None
    return context


async def candidates_for(container: Container, question: str) -> list[Document]:
    """Retrieve what the pipeline grades, before it leaves anything out."""
    repository = (await container.workspaces.open("default")).passages
    return await repository.retrieve(question, limit=container.settings.candidates)


def name_of(document: Document) -> str:
    """The name of a passage's document."""
    return str(document.metadata.get("filename", ""))
