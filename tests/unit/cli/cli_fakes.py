"""A container of fakes."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cragside.adapters.documents.loader import FileLoader
from cragside.application.attempts import Handled
from cragside.application.enricher import Enriched
from cragside.domain.command import question_of
from cragside.domain.document import Document, SourceText
from cragside.domain.outcome import RagContext
from cragside.domain.prompt import inject
from cragside.ports.rag_repository import Indexed, KnowledgeStatus

OTTER = Document(
    "1", "Otters eat urchins.", "local", title="Sea otter", score=0.91, metadata={"filename": "sea-otter.md"}
)


def context_with(*documents: Document, **fields: Any) -> RagContext:
    given = {"query": "why?", "search_performed": False, "processing_time_ms": 12, "verdict": "local", "threshold": 0.6}
    return RagContext(documents=documents, **{**given, **fields})


@dataclass
class FakeRepository:
    workspace: str
    texts: dict[str, str] = field(default_factory=dict)
    failing: Mapping[str, str] = field(default_factory=dict)

    async def save_documents(self, documents: list[SourceText]) -> list[Indexed]:
        return [self._save(document) for document in documents]

    def _save(self, document: SourceText) -> Indexed:
        if document.name in self.failing:
            return Indexed(document.name, "failed", self.failing[document.name])
        known = self.texts.get(document.name)
        self.texts[document.name] = document.text
        status = "indexed" if known is None else "unchanged" if known == document.text else "updated"
        return Indexed(document.name, status, passages=0 if status == "unchanged" else 1)

    async def delete_document(self, name: str) -> bool:
        return self.texts.pop(name, None) is not None

    async def status(self) -> KnowledgeStatus:
        count = len(self.texts)
        return KnowledgeStatus(self.workspace, "wordllama", count, count, 7, 3, {"processed": count})


class FakeWorker:
    """Reports these, and notes how it was asked to run."""

    def __init__(self, *handled: Handled, error: Exception | None = None, waits: bool = False) -> None:
        self.handled = handled
        self.error = error
        self.stopped = asyncio.Event()
        self.waits = waits
        self.asked: dict[str, Any] = {}

    def stop(self) -> None:
        self.stopped.set()

    async def run(self, *, progress: Any, **asked: Any) -> Counter[str]:
        self.asked = asked
        if self.error:
            raise self.error
        for each in self.handled:
            progress(each)
        if self.waits:
            os.kill(os.getpid(), signal.SIGTERM)
            await self.stopped.wait()
        return Counter(each.outcome for each in self.handled)


class FakeIntake:
    """Keeps what was brought."""

    def __init__(self) -> None:
        self.brought: list[tuple[str, str]] = []

    async def text(self, source: SourceText, *, workspace: str) -> Any:
        self.brought.append((source.name, workspace))
        return SimpleNamespace(tasks=[])


@dataclass
class FakeContainer:
    settings: Any = None
    host: Any = None
    search: Any = None
    context: RagContext = field(default_factory=lambda: context_with(OTTER))
    error: Exception | None = None
    repositories: dict[str, FakeRepository] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[dict[str, Any], str | None]] = field(default_factory=list)
    loader: FileLoader = field(default_factory=FileLoader)
    reindexed: list[str] = field(default_factory=list)
    closed: int = 0
    made_worker: Any = None
    intake: Any = field(default_factory=lambda: FakeIntake())

    async def prepare(self) -> None:
        """Nothing has to be loaded."""

    def keeps_worker(self) -> bool:
        return False

    def worker(self) -> Any:
        return self.made_worker

    @property
    def enricher(self) -> Any:
        return self

    @property
    def workspaces(self) -> Any:
        return SimpleNamespace(
            open=self._open, prepare=self._prepare_workspace, reindex=self._reindex, check=self._check
        )

    async def _open(self, name: str) -> Any:
        if self.error:
            raise self.error
        return SimpleNamespace(passages=self.repositories.setdefault(name, FakeRepository(name, failing=self.failing)))

    async def _check(self, name: str, *, whole: bool = False) -> None:
        if self.error:
            raise self.error

    async def _prepare_workspace(self, name: str) -> None:
        if self.error:
            raise self.error

    async def _reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        self.reindexed.append(workspace)
        progress("sea-otter.md")
        return 1

    async def enrich(self, request: dict[str, Any], *, workspace: str | None = None) -> Enriched:
        if self.error:
            raise self.error
        self.asked.append((request, workspace))
        question = question_of(request["prompt"])
        if question is None:
            return Enriched(dict(request), None)
        block = f"<evidence>\n[1] {OTTER.content}\n</evidence>" if self.context.documents else ""
        return Enriched(inject(request, block, question), self.context)

    async def close(self) -> None:
        self.closed += 1
        await self.loader.close()
