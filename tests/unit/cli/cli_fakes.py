"""Stand-ins for models, stores and workers in the container of a command."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cragside.application.attempts import Handled
from cragside.application.enricher import Enriched
from cragside.bootstrap import Container
from cragside.domain.document import SourceText
from cragside.domain.evidence import Document
from cragside.domain.knowledge import KnowledgeStatus
from cragside.domain.outcome import RagContext
from cragside.domain.preferences import NOTHING_FOUND
from cragside.domain.prompt import inject
from cragside.domain.query import question_of
from cragside.settings import Settings

OTTER = Document(
    "1", "Otters eat urchins.", "local", title="Sea otter", score=0.91, metadata={"filename": "sea-otter.md"}
)


def context_with(*documents: Document, **fields: Any) -> RagContext:
    given = {"query": "why?", "search_performed": False, "processing_time_ms": 12, "verdict": "local", "threshold": 0.6}
    return RagContext(documents=documents, **{**given, **fields})


class FakeWorker:
    """Reports these, and notes how it was asked to run."""

    def __init__(
        self, *handled: Handled, error: Exception | None = None, waits: bool = False, leads: bool = True
    ) -> None:
        self.handled = handled
        self.leads = lambda: leads
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


class CountingContainer(Container):
    """Counts how often it is closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1
        await super().close()


@dataclass
class Replacements:
    """Container of a command with stand-ins for its models, its store and its worker."""

    host: Any = None
    search: Any = None
    context: RagContext = field(default_factory=lambda: context_with(OTTER))
    error: Exception | None = None
    names: Sequence[str] = ()
    opened: list[str] = field(default_factory=list)
    asked: list[tuple[dict[str, Any], str | None]] = field(default_factory=list)
    reindexed: list[str] = field(default_factory=list)
    waiting: int = 0
    failing: dict[str, Exception] = field(default_factory=dict)
    disagreements: dict[str, str] = field(default_factory=dict)
    made_worker: Any = None
    intake: FakeIntake = field(default_factory=FakeIntake)
    built: CountingContainer | None = None

    def build(self, settings: Settings) -> Container:
        """The real container with these members. The servers are real where a test names none."""
        servers = {name: each for name in ("host", "search") if (each := getattr(self, name)) is not None}
        workspaces = SimpleNamespace(
            open=self._open,
            prepare=self._check,
            reindex=self._reindex,
            check=self._check,
            names=self._names,
            disagreement=self._disagreement,
        )
        self.built = CountingContainer(
            settings,
            workspaces=workspaces,
            enricher=SimpleNamespace(enrich=self._enrich),
            finder=SimpleNamespace(prepare=self._check),
            intake=self.intake,
            worker=lambda: self.made_worker,
            **servers,
        )
        return self.built

    @property
    def settings(self) -> Settings:
        assert self.built
        return self.built.settings

    @property
    def closed(self) -> int:
        return self.built.closed if self.built else 0

    async def _open(self, name: str) -> Any:
        await self._check()
        self.opened.append(name)

        async def status() -> KnowledgeStatus:
            return KnowledgeStatus(name, "wordllama", 0, 0, 7, 3, {"processed": 0}, waiting_changes=self.waiting)

        async def languages() -> dict[str | None, int]:
            return {}

        return SimpleNamespace(passages=SimpleNamespace(status=status), documents=SimpleNamespace(languages=languages))

    async def _check(self, *_: str, **__: bool) -> None:
        if self.error:
            raise self.error

    async def _names(self) -> Sequence[str]:
        return self.names

    async def _disagreement(self, name: str) -> str:
        await self._check()
        if name in self.failing:
            raise self.failing[name]
        return self.disagreements.get(name, "")

    async def _reindex(self, workspace: str, progress: Callable[[str], None]) -> int:
        self.reindexed.append(workspace)
        progress("sea-otter.md")
        return 1

    async def _enrich(
        self, request: dict[str, Any], *, workspace: str | None = None, tell_none: bool = False
    ) -> Enriched:
        await self._check()
        self.asked.append((request, workspace))
        question = question_of(request["prompt"])
        if question is None:
            return Enriched(dict(request), None)
        block, told = f"<evidence>\n[1] {OTTER.content}\n</evidence>", NOTHING_FOUND if tell_none else ""
        return Enriched(inject(request, block if self.context.documents else told, question), self.context)


class Host:
    """A host that lists these models, and notes which are called. A call may fail, or never end."""

    def __init__(self, *models: str, error: Exception | None = None, call: Exception | str | None = None) -> None:
        self._models, self._error, self._call = frozenset(models), error, call
        self.called: list[tuple[str, str]] = []

    async def version(self) -> str:
        if self._error:
            raise self._error
        return "0.9.1"

    async def models(self) -> frozenset[str]:
        return self._models

    async def check_chat(self, model: str) -> None:
        await self._check("chat", model)

    async def check_embedding(self, model: str) -> None:
        await self._check("embedding", model)

    async def _check(self, kind: str, model: str) -> None:
        self.called.append((kind, model))
        if isinstance(self._call, Exception):
            raise self._call
        if self._call == "hang":
            await asyncio.Event().wait()
