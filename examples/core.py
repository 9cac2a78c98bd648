"""Takes the six steps of corrective RAG: retrieve, grade, decide, rewrite, search, inject.

    python examples/core.py ["QUESTION"]

It indexes four notes into a new store, asks, and prints what each step found. It needs no server and no key: the models
are embedded. Where SEARXNG_HOST is not set, three pages in this file stand in for the web.

`cragside.crag` takes the same steps as a graph. It adds a deadline, replacements for components that fail, follow-up
questions, questions that ask for several things, second opinions of a chat model, and the order of dated passages.
docs/core.md explains the steps.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from cragside.application.grading import by_relevance
from cragside.bootstrap import Container
from cragside.domain.context import pack
from cragside.domain.evidence import Document
from cragside.domain.faults import counted
from cragside.domain.prompt import inject, question_in
from cragside.domain.reading import Reading
from cragside.domain.verdict import DecisionPolicy, document_of_evidence, varied, verdict_of
from cragside.ports.search_service import SearchService
from cragside.settings import load_settings

WORKSPACE = "harbour"
NOTES = {
    "lamp.md": "# The lamp\nThe harbour master lights the lamp of Aldersund lighthouse at dusk. It burns rapeseed oil.",
    "tower.md": "# The tower\nAldersund lighthouse is 41 metres tall and was built in 1862 from granite.",
    "ferry.md": "# The ferry\nThe ferry to Holm leaves at 7:40 and at 16:15. On Sundays it does not sail.",
    "dogs.md": "# Dogs\nDogs travel on the upper deck of the ferry, on a lead.",
}
PAGES = (
    ("Puffins of the northern coast", "Puffins return to the cliffs of Holm in April and leave in August."),
    ("Sea otters", "Sea otters hold hands while they sleep, so that they do not drift apart."),
    ("Granite", "Granite is an igneous rock of quartz, feldspar and mica."),
)


class Bookshelf(SearchService):
    """Stands in for a web search: it finds the pages of this file that share a word with the query."""

    def __init__(self, container: Container) -> None:
        self._rewrite = container.rewrite

    @override
    async def search(self, query: str) -> list[dict[str, Any]]:
        asked = set(query.lower().split())
        shared = {page: len(asked & set(" ".join(page).lower().rstrip(".").split())) for page in PAGES}
        ranked = sorted((page for page in PAGES if shared[page]), key=lambda page: -shared[page])
        return [
            {"title": title, "url": f"https://shelf.example/{title.lower().replace(' ', '-')}", "content": content}
            for title, content in ranked
        ]

    @override
    async def check(self) -> None:
        """It is always there."""

    @override
    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        return await self._rewrite(query, model)


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of each step. `query` and `web` are empty where the documents sufficed."""

    reading: Reading
    graded: Sequence[Document]
    suffices: bool
    query: str
    web: Sequence[Document]
    evidence: Sequence[Document]
    request: Mapping[str, Any]

    def report(self) -> Iterator[str]:
        """Tell the steps, a line each."""
        yield f"retrieve  {counted(len(self.graded), 'passage')} for: {self.reading.text}"
        for passage in self.graded:
            yield f"grade     {passage.score:.2f}  {passage.title}"
        yield f"decide    {'the documents suffice' if self.suffices else 'the documents do not suffice'}"
        if not self.suffices:
            yield f"rewrite   {self.query}"
        for page in self.web:
            yield f"search    {page.score:.2f}  {page.title}"
        yield f"inject    {verdict_of(self.evidence)}: {counted(len(self.evidence), 'passage')}"


class Core:
    """The six steps, over the members of a container."""

    def __init__(self, container: Container) -> None:
        settings = container.settings
        self._container = container
        self._search = container.search or Bookshelf(container)
        self._policy = DecisionPolicy(settings.threshold, settings.decision)

    async def run(self, request: Mapping[str, Any]) -> Run:
        """Give a request that begins with `/rag` its evidence."""
        question = question_in(request, self._container.settings.command_prefix)
        if not question:
            raise SystemExit("Begin the prompt with /rag and a question.")
        reading, passages = await self.retrieve(question)
        graded = await self.grade(reading, passages)
        suffices = self.decide(graded)
        query = "" if suffices else await self.rewrite(question)
        web = [] if suffices else await self.search(question, query)
        evidence, enriched = self.inject(request, question, graded, web)
        return Run(reading, graded, suffices, query, web, evidence, enriched)

    async def retrieve(self, question: str) -> tuple[Reading, list[Document]]:
        """Find candidates by vectors, words and the graph. The reading is the question in the documents' own words."""
        workspace = await self._container.workspaces.open(WORKSPACE)
        return await workspace.passages.look_up(question, limit=self._container.settings.candidates)

    async def grade(self, reading: Reading, passages: Sequence[Document]) -> list[Document]:
        """Give each passage the probability that it answers the question, and put the best first."""
        return by_relevance(passages, await self._container.embedded_grader.grade_read(reading, passages))

    def decide(self, graded: Sequence[Document]) -> bool:
        """Tell if the documents suffice: one passage has to be above the threshold, not at it."""
        return self._policy.suffices(graded)

    async def rewrite(self, question: str) -> str:
        """Turn the question into a query for a search engine."""
        return await self._search.transform_query(question)

    async def search(self, question: str, query: str) -> list[Document]:
        """Search the web, and grade what it has."""
        pages = [
            Document(f"web-{number}", page["content"], "web", title=page["title"], url=page["url"])
            for number, page in enumerate(await self._search.search(query), start=1)
        ]
        return by_relevance(pages, await self._container.embedded_grader.grade(question, pages))

    def inject(
        self, request: Mapping[str, Any], question: str, graded: Sequence[Document], web: Sequence[Document]
    ) -> tuple[Sequence[Document], dict[str, Any]]:
        """Put the best passages into the prompt, as quoted text that cannot leave its block."""
        settings = self._container.settings
        chosen = [*self._policy.passing(graded), *self._policy.plausible(web)]
        best = varied(chosen, settings.max_documents, document_of_evidence)
        packed = pack(best, budget=settings.context_tokens, count_tokens=self._container.count_tokens)
        return packed.documents, inject(request, packed.block, question)


async def index(container: Container) -> None:
    """Take the notes in, and have a worker fill the graph."""
    for name, text in NOTES.items():
        await container.intake.written(text, name=name, workspace=WORKSPACE)
    await container.worker().run(until_idle=True)


async def main(question: str) -> None:
    """Ask in a new store, and print the steps and the prompt."""
    with tempfile.TemporaryDirectory() as home:
        container = Container(load_settings({**os.environ, "RAG_HOME": home}))
        try:
            await index(container)
            run = await Core(container).run({"prompt": f"/rag {question}"})
        finally:
            await container.close()
    print(*run.report(), "", run.request["prompt"], sep="\n")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "When do puffins return to Holm?"))
