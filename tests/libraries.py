"""Workspaces in memory for tests of those who use them: what was accepted, done and given up."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cragside.domain.document import DocType
from cragside.domain.indexing import DocumentKey, DocumentRecord, Part, Passage, Stored, Task
from cragside.store.workspaces import Workspace


def record(document_id: str = "doc-1", doc_type: DocType = "text", parts: int = 1) -> DocumentRecord:
    return DocumentRecord(
        id=document_id,
        name=f"{document_id}.md",
        title=document_id,
        file_type="md",
        doc_type=doc_type,
        content_hash=f"{document_id}-sha",
        size=10,
        characters=10,
        created_at="2026-01-01T00:00:00+00:00",
        updated_at="2026-01-01T00:00:00+00:00",
        parts=tuple(Part(number, number, number) for number in range(parts)),
    )


class MemoryWorkspaces:
    """Every workspace holds the same documents. `before` is called with each task before it is done."""

    def __init__(self, *, before: Callable[[Task], Any] | None = None, passages: Sequence[Passage] = ()) -> None:
        self.before = before
        self.held = list(passages)
        self.record: DocumentRecord | None = record()
        self.log: list[tuple[Any, ...]] = []
        self.failures: list[tuple[Task, str]] = []
        self.unfinished: dict[str, list[Task]] = {}
        self.open_for_enrichment = True

    async def names(self) -> list[str]:
        return sorted(self.unfinished)

    async def stored(self, workspace: str, keys: Collection[DocumentKey] = ()) -> Stored:
        return Stored()

    async def open(self, name: str) -> Workspace:
        documents: Any = _Library(self, name)
        work: Any = self
        nothing: Any = None
        return Workspace(name, documents, passages=nothing, graph=nothing, work=work, read_only=False)

    async def embed(self, task: Task) -> None:
        await self._hook(task)
        self.log.append(("embed", task))

    async def begin_enrichment(self, task: Task) -> bool:
        await self._hook(task)
        self.log.append(("begin", task))
        return self.open_for_enrichment

    async def give_back(self, task: Task | None = None) -> None:
        self.log.append(("back", task))

    async def annotate(self, task: Task, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None) -> None:
        self.log.append(("annotate", task, list(tier2), tier3))

    async def extend_graph(self, task: Task) -> None:
        self.log.append(("graph", task))

    async def failed(self, task: Task, reason: str) -> None:
        self.failures.append((task, reason))

    def done(self) -> list[Task]:
        return [task for step, task, *_ in self.log if step in ("embed", "graph")]

    async def _hook(self, task: Task) -> None:
        if self.before is not None and (waited := self.before(task)) is not None:
            await waited


class _Library:
    def __init__(self, held: MemoryWorkspaces, workspace: str) -> None:
        self._held = held
        self._workspace = workspace

    async def passages(self, document_id: str, part: int | None = None) -> list[Passage]:
        return [passage for passage in self._held.held if part is None or passage.part == part]

    async def document(self, document_id: str) -> DocumentRecord | None:
        return self._held.record

    async def restart(
        self, document_id: str | None = None, *, force: bool = False, failures: bool = True
    ) -> list[Task]:
        assert not failures, "what was given up is not for the sweep to bring back"
        return self._held.unfinished[self._workspace]


class EchoAnnotator:
    """Says what it was given."""

    def tier2(self, text: str) -> dict[str, Any]:
        return {"entities": [], "keywords": text.split(), "language": None}

    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        return {"summary": text, "type": doc_type}
