"""Ports in memory. They keep the contract suites in tests/contract, as the real adapters do."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from cragside.application.grading import PassageJudge
from cragside.domain.document import SourceText
from cragside.domain.errors import NotFound, PayloadTooLarge, ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.indexing import DocumentKey, Stored
from cragside.domain.knowledge import Indexed, KnowledgeStatus
from cragside.domain.query import EVERYTHING, Filter, Mode, Query, SimilaritySearch
from cragside.domain.reading import Reading
from cragside.ports.files import UploadForm
from cragside.ports.models import RelevanceGrader
from cragside.ports.rag_repository import RagRepository
from cragside.ports.search_service import SearchService
from cragside.store.workspaces import Workspace


def shared_words(query: str, text: str) -> float:
    """The share of the query's words that a text holds, 0..1."""
    wanted = {word.strip("?.,!").lower() for word in query.split()} - {""}
    present = {word.strip("?.,!#").lower() for word in text.split()}
    return len(wanted & present) / len(wanted) if wanted else 0.0


async def as_written(question: str, _: object) -> Reading:
    """Read a question as it is written."""
    return Reading(question)


class FakeRepository(RagRepository):
    """Every source is one passage; relevance is the share of the query's words in it."""

    def __init__(self, *sources: SourceText, failure: Exception | None = None) -> None:
        self.failure = failure
        self.queries: dict[str, Query] = {}
        self.changes = 0
        self.sources = {source.source: source for source in sources}

    async def save_query(self, query: Query) -> None:
        self.queries[query.id] = query

    async def get_query(self, query_id: str) -> Query | None:
        return self.queries.get(query_id)

    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        return [self._saved(document) for document in documents]

    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        if self.failure:
            raise self.failure
        found = [
            Document(key, source.text, "local", title=source.title or source.name, metadata={"filename": source.name})
            for key, source in self.sources.items()
        ]
        return sorted(found, key=lambda document: -shared_words(query, document.content))[:limit]

    async def similar(self, search: SimilaritySearch) -> list[Document]:
        found = await self.retrieve(search.text, limit=len(self.sources))
        compared = [document.compared(shared_words(search.text, document.content)) for document in found]
        least = 0.3 if search.threshold is None else search.threshold
        return [document for document in compared if (document.similarity or 0) >= least][: search.limit]

    async def similarities(self, query: str, passages: Sequence[str]) -> dict[str, float]:
        return {key: shared_words(query, self.sources[key].text) for key in passages if key in self.sources}

    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        found = await self.retrieve(query, limit=10)
        graded = [document.graded(shared_words(query, document.content)) for document in found]
        return [document for document in graded if (document.score or 0) > threshold]

    async def status(self) -> KnowledgeStatus:
        count = len(self.sources)
        return KnowledgeStatus("default", "fake", count, count, 0, 0, {"processed": count} if count else {})

    async def version(self) -> str:
        return str(self.changes)

    def _saved(self, document: SourceText) -> Indexed:
        known = self.sources.get(document.source)
        self.changes += 1
        self.sources[document.source] = document
        if known is None:
            return Indexed(document.name, "indexed", passages=1)
        return Indexed(document.name, "unchanged" if known.text == document.text else "updated", passages=1)


class EmptyLibrary:
    """A library that lists no documents."""

    async def documents(self, *, limit: int) -> tuple[list[Any], int]:
        return [], 0


class FakeWorkspaces:
    """One repository for every workspace, and no documents to list. `at_hand` is the version of its open store."""

    def __init__(self, repository: RagRepository, *, at_hand: str | None = "1") -> None:
        self._repository = repository
        self.at_hand = at_hand

    def version_at_hand(self, workspace: str) -> str | None:
        return self.at_hand

    async def open(self, name: str) -> Workspace:
        nothing: Any = None
        documents: Any = EmptyLibrary()
        return Workspace(name, documents, self._repository, nothing, nothing, read_only=False)

    async def names(self) -> list[str]:
        return ["default"]

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        return Stored()

    async def check(self, workspace: str, *, whole: bool = False) -> None:
        """Nothing is stored that could be damaged."""

    async def prepare(self, workspace: str) -> None:
        """Nothing has to be loaded."""

    async def reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        raise NotImplementedError("the fake has no embedding model to change")


class ScriptedGrader(RelevanceGrader):
    """Grades by content; content that is not in the script fails the test."""

    def __init__(self, scores: dict[str, float], before: Callable[[], Awaitable[None]] | None = None) -> None:
        self.scores = scores
        self.before = before

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        if self.before:
            await self.before()
        return [self.scores[document.content] for document in documents]


class ScriptedJudge(PassageJudge):
    """Judges by content, `pause` seconds for each passage. The model is called `judge`; None is no model."""

    def __init__(self, answers: dict[str, float], *, model: str | None = "judge") -> None:
        self.answers = answers
        self.model = model
        self.requested: list[str | None] = []
        self.judged: list[str] = []
        self.tried_again: list[str] = []
        self.pace = self.pause = 0.0
        self.failure: ServiceUnavailable | None = None
        self.failure_of = ""

    async def ready(self, requested: str | None) -> str | None:
        self.requested.append(requested)
        return self.model

    def seconds(self, model: str) -> float:
        return self.pace

    def try_again(self, model: str, question: str, passage: Document) -> None:
        self.tried_again.append(passage.content)

    async def probability(self, model: str, question: str, passage: Document) -> float:
        self.judged.append(passage.content)
        await asyncio.sleep(self.pause)
        if self.failure:
            raise self.failure
        if passage.content == self.failure_of:
            raise ServiceUnavailable("grader", "Ollama answered 500.")
        return self.answers[passage.content]


class WordGrader(RelevanceGrader):
    """Relevance is the share of the query's words in the document."""

    async def grade(self, query: str, documents: Sequence[Document]) -> list[float]:
        return [shared_words(query, document.content) for document in documents]


class FakeSearch(SearchService):
    """Answers every search with the same results."""

    def __init__(
        self, *results: dict[str, Any], failure: Exception | None = None, rewritten: str | Exception = ""
    ) -> None:
        self.results = list(results)
        self.failure = failure
        self.rewritten = rewritten
        self.searched: list[str] = []

    async def search(self, query: str) -> list[dict[str, Any]]:
        self.searched.append(query)
        if self.failure:
            raise self.failure
        return list(self.results)

    async def check(self) -> None:
        if self.failure:
            raise self.failure

    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        if isinstance(self.rewritten, Exception):
            raise self.rewritten
        return self.rewritten or query


class FolderObjectStore:
    """The files below a folder. `failure` is raised for every object, `asked` holds what was asked for."""

    def __init__(self, folder: Path, failure: Exception | None = None) -> None:
        self.folder = folder
        self.failure = failure
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return "s3://fake/store"

    async def fetch(self, name: str, to: BinaryIO, *, limit: int) -> None:
        self.asked.append(name)
        if self.failure:
            raise self.failure
        try:
            content = (self.folder / name).read_bytes()
        except OSError as error:
            raise NotFound(f"There is no {name}.") from error
        to.write(content[:limit])
        if len(content) > limit:
            raise PayloadTooLarge(f"{name} has more than {limit} bytes.")

    async def disconnect(self) -> None:
        """A folder has no connections."""


class FolderUploadStore(FolderObjectStore):
    """The files below a folder, which `send` puts there. `failure` is raised by everything, `kept` by removing."""

    def __init__(self, folder: Path, *, url: str = "http://127.0.0.1:1/bucket") -> None:
        super().__init__(folder)
        self.url = url
        self.kept: Exception | None = None

    async def form(self, name: str, *, most_bytes: int, seconds: int) -> UploadForm:
        if self.failure:
            raise self.failure
        return UploadForm(self.url, {"key": name, "policy": f"1 to {most_bytes} bytes for {seconds} s"})

    def send(self, fields: Mapping[str, str], content: bytes) -> None:
        path = self.folder / fields["key"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    async def remove(self, name: str) -> None:
        if failure := self.failure or self.kept:
            raise failure
        (self.folder / name).unlink(missing_ok=True)

    @property
    def names(self) -> list[str]:
        """List the stored things by name."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
