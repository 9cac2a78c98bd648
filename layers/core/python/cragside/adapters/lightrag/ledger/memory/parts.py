"""The steps of indexing a part, in memory."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from typing_extensions import override

from cragside.adapters.lightrag.ledger.changes import ChangeGuard, GraphChange, OnceGone, Row, WhileCurrent
from cragside.adapters.lightrag.ledger.entries import StoredPart, searched_text
from cragside.adapters.lightrag.ledger.memory.documents import MemoryDocuments, now
from cragside.adapters.lightrag.ledger.memory.tables import PASSAGES, MemoryTables
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.indexing import Part, Task
from cragside.ports.embedder import Vectors


class MemoryParts(MemoryDocuments):
    """Writes parts: their states, their vectors and their share of the graph."""

    def __init__(self, memory: MemoryTables, workspace: str, search_text: Callable[[str], str]) -> None:
        super().__init__(memory, workspace)
        self._search_text = search_text

    @override
    async def begin_enrichment(self, part: StoredPart) -> None:
        self._check_leases()
        self._change(part, enrichment="processing", error=self._error_of_embedding(part))

    @override
    async def mark_failed(self, part: StoredPart, stage: str, reason: str) -> None:
        self._check_leases()
        self._change(part, error=reason, **({} if stage == "embed" else {"enrichment": "failed"}))

    @override
    async def give_back(self, part: StoredPart) -> None:
        self._check_leases()
        version = self._memory.versions.get(part.version)
        if version and part.number in version.parts and version.parts[part.number].enrichment == "processing":
            self._set(version, part.number, enrichment="pending")

    @override
    async def annotate(
        self, part: StoredPart, tier2: Sequence[Mapping[str, Any]], tier3: Mapping[str, Any] | None
    ) -> None:
        self._check_leases()
        for key, tier in list(zip(await self.chunk_ids(part), tier2, strict=True)):
            self._memory.chunks[key].tier2 = json.loads(json.dumps(dict(tier)))
        if tier3 is not None:
            self._change(part, tier3=json.loads(json.dumps(dict(tier3))))
        self._memory.changes += 1

    @override
    async def enter_vectors(
        self, task: Task, part: StoredPart, rows: Mapping[str, Row], vectors: Vectors, model: str
    ) -> None:
        self._check_leases()
        self._check_model(model)
        words = self._search_text
        self._memory.write_vectors(PASSAGES, rows, vectors, lambda text: words(searched_text(part.title, text)))
        self._memory.model = model
        held = self._held(part)
        self._change(part, embedded=True, error=held.error if held and held.enrichment == "failed" else "")
        version = self._memory.versions.get(part.version)
        if version is None or all(held.embedded for held in version.parts.values()):
            outdated = [each for each in self._memory.versions.values() if each.id == task.document_id]
            self._retire(each for each in outdated if each.state == "replaced")

    @override
    async def apply(self, change: GraphChange, guard: ChangeGuard, model: str) -> bool:
        self._check_leases()
        self._check_model(model)
        if any(len(vectors.written) != len(vectors.vectors) for vectors in change.vectors.values()):
            raise ValueError("Rows and vectors differ in number: one of the two is shorter.")
        if isinstance(guard, WhileCurrent):
            if not self._mark_enriched(guard):
                return False
            self._memory.model = model
        if isinstance(guard, OnceGone) and not self._remove(guard.part):
            return False
        self._write_graph(change)
        for namespace, vectors in change.vectors.items():
            self._memory.erase_vectors(namespace, vectors.removed)
            stored = self._memory.rows[namespace]
            stored.update({key: stored[key]._replace(row=row) for key, row in vectors.updated.items() if key in stored})
            self._memory.write_vectors(namespace, vectors.written, vectors.vectors, self._search_text)
        for namespace, values in change.values.items():
            for key in [key for key, value in values.items() if value is None]:
                self._memory.values[namespace].pop(key, None)
            self._memory.write_values(namespace, {key: value for key, value in values.items() if value is not None})
        self._memory.changes += 1
        return True

    @override
    async def naming(self, kind: str, name: str, going: Collection[str], most: int) -> list[str]:
        passages = sorted(passage for known, passage in self._memory.mentions[kind] if known == name)
        others = [passage for passage in passages if passage not in going]
        return [passage for passage in passages if passage in going] + others[:most]

    @override
    async def embedding_model(self) -> str | None:
        return self._memory.model

    def _change(self, part: StoredPart, **changes: Any) -> None:
        version = self._memory.versions.get(part.version)
        if version and part.number in version.parts:
            self._set(version, part.number, **changes)

    def _held(self, part: StoredPart) -> Part | None:
        version = self._memory.versions.get(part.version)
        return version.parts.get(part.number) if version else None

    def _error_of_embedding(self, part: StoredPart) -> str:
        held = self._held(part)
        return "" if held is None or held.embedded or held.enrichment == "failed" else held.error

    def _check_model(self, model: str) -> None:
        """The next try opens the store anew."""
        if self._memory.model not in (None, model):
            raise ServiceUnavailable(
                "knowledge_base", "The store has been built anew with another embedding model meanwhile."
            )

    def _mark_enriched(self, guard: WhileCurrent) -> bool:
        """A version that went meanwhile must not come back into the graph."""
        version = self._memory.versions.get(guard.part.version)
        if version is None or version.state != "current" or guard.part.number not in version.parts:
            return False
        tier3 = {**(version.parts[guard.part.number].tier3 or {}), "extraction": dict(guard.tally)}
        error = self._error_of_embedding(guard.part)
        self._change(guard.part, enrichment="enriched", error=error, tier3=tier3, enriched_at=now())
        return True

    def _remove(self, part: StoredPart) -> bool:
        """Remove a part whose version is gone. False when it is not."""
        version = self._memory.versions.get(part.version)
        if version is None or version.state != "gone":
            return False
        chunks = [key for key, chunk in version.chunks.items() if chunk.part == part.number]
        self._erase(chunks)
        for key in chunks:
            del version.chunks[key]
            self._memory.chunks.pop(key, None)
        version.parts.pop(part.number, None)
        return True

    def _write_graph(self, change: GraphChange) -> None:
        memory = self._memory
        for ends, edge in change.edges.items():
            if edge is None:
                memory.drop_edge(ends)
        for name, node in change.nodes.items():
            if node is None:
                memory.nodes.pop(name, None)
            else:
                memory.nodes[name] = dict(node)
        for ends, edge in change.edges.items():
            if edge is not None:
                memory.put_edge(ends, dict(edge))
        for mentions in change.mentions:
            names, passages = set(mentions.without_names), set(mentions.without_passages)
            held = memory.mentions[mentions.kind]
            kept = {each: None for each in held if each[0] not in names and each[1] not in passages}
            memory.mentions[mentions.kind] = {**kept, **dict.fromkeys(mentions.added)}
