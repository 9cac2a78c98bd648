"""What a ledger in memory keeps beside its documents, and the store as a whole."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from typing_extensions import override

from cragside.adapters.lightrag.ledger.cutting import TEXTS
from cragside.adapters.lightrag.ledger.entries import text_hash
from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.ledger.memory.parts import MemoryParts
from cragside.adapters.lightrag.ledger.memory.tables import PASSAGES, MemoryTables
from cragside.adapters.lightrag.storable import storable
from cragside.domain.query import Query
from cragside.ports.clock import SYSTEM_CLOCK, Clock
from cragside.ports.embedder import Vectors
from cragside.ports.workspaces import KnowledgeStatus

_ANSWERS = "llm_response_cache"


class MemoryLedger(MemoryParts):
    """A store in memory. Every ledger of one store sees what the others write."""

    def __init__(
        self,
        memory: MemoryTables,
        workspace: str,
        search_text: Callable[[str], str],
        *,
        read_only: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(memory, workspace, search_text)
        self._read_only = read_only
        self._clock = clock

    @override
    async def dimensions(self) -> int | None:
        found = next((row for rows in self._memory.rows.values() for row in rows.values()), None)
        return None if found is None else len(found.vector)

    @override
    async def kept_vectors(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        kept = self._memory.kept
        return {text: kept[key][1] for text in texts if (key := (model, text_hash(text))) in kept}

    @override
    async def keep_vectors(
        self, model: str, document_id: str, texts: Sequence[str], vectors: Vectors, *, most: int
    ) -> None:
        self._check_leases()
        kept = self._memory.kept
        for text, vector in list(zip(texts, vectors, strict=True)):
            kept.pop((model, text_hash(text)), None)
            kept[model, text_hash(text)] = document_id, vector
        for key in list(kept)[: max(len(kept) - most, 0)]:
            del kept[key]

    @override
    async def save_query(self, query: Query, *, most: int) -> None:
        queries, key = self._memory.queries, storable(query.id)
        queries.pop(key, None)
        queries[key] = Query(key, storable(query.text), self._workspace, query.created_at)
        for old in list(queries)[: max(len(queries) - most, 0)]:
            del queries[old]

    @override
    async def query(self, query_id: str) -> Query | None:
        return self._memory.queries.get(storable(query_id))

    @override
    async def copy_facts_from(self, other: Ledger) -> None:
        self._check_leases()
        old = _in_memory(other)
        self._memory.queries = dict(old.queries)

    @override
    async def copy_document_from(self, other: Ledger, document_id: str) -> None:
        self._check_leases()
        old = _in_memory(other)
        known = next(each for each in old.versions.values() if each.state == "current" and each.id == document_id)
        number = self._memory.next_number()
        # The graph is empty yet.
        parts = {
            part.number: replace(
                part,
                embedded=False,
                error=part.error if part.embedded else "",
                enrichment="pending" if part.enrichment == "enriched" else part.enrichment,
            )
            for part in known.parts.values()
        }
        chunks = {key: replace(chunk, version=number) for key, chunk in known.chunks.items()}
        copied = replace(known, number=number, parts=parts, keys=dict(known.keys), chunks=chunks)
        self._memory.versions[number] = copied
        self._memory.chunks.update(chunks)
        texts = {key: {**old.values[TEXTS][key], "llm_cache_list": []} for key in chunks if key in old.values[TEXTS]}
        self._memory.values[TEXTS].update(texts)
        named = {each for key in texts for each in old.values[TEXTS][key].get("llm_cache_list", ())}
        answers = {key: value for key, value in old.values[_ANSWERS].items() if key in named}
        self._memory.values[_ANSWERS].update(answers)
        self._memory.origins.update({key: source for key, source in old.origins.items() if key == document_id})

    @override
    async def replace_by(self, other: Ledger) -> None:
        self._check_leases()
        leases = self._memory.leases
        vars(self._memory).update({**vars(_in_memory(other)), "leases": leases})

    @override
    async def status(self, model: str) -> KnowledgeStatus:
        records = self._records(lambda _: True)
        states = [record.status for record in records]
        return KnowledgeStatus(
            workspace=self._workspace,
            embedding_model=model,
            documents=len(records),
            passages=len(self._memory.rows[PASSAGES]),
            entities=len(self._memory.nodes),
            relations=len(self._memory.edges),
            by_status={str(state): states.count(state) for state in states},
        )

    @override
    async def state(self) -> str:
        return f"{self._memory.generation}-{self._memory.changes}"

    @override
    async def generation(self) -> str:
        return self._memory.generation

    @override
    async def flush(self) -> None:
        return

    @override
    async def damage(self, *, whole: bool = False) -> str:
        return ""

    @override
    def tidy(self) -> None:
        answers, texts = self._memory.values[_ANSWERS], self._memory.values[TEXTS]
        used = {key for text in texts.values() for key in text.get("llm_cache_list", ())}
        for key in [key for key, answer in answers.items() if answer.get("chunk_id") not in self._memory.chunks]:
            if key not in used:
                del answers[key]
        self._memory.untidy = False

    @override
    async def is_untidy(self) -> bool:
        return self._memory.untidy

    @property
    @override
    def is_tidying(self) -> bool:
        return False

    @property
    @override
    def place(self) -> str:
        return "memory"

    @property
    @override
    def read_only(self) -> bool:
        return self._read_only

    @override
    async def close(self) -> None:
        return

    @override
    def release(self) -> None:
        return


def _in_memory(ledger: Ledger) -> MemoryTables:
    if not isinstance(ledger, MemoryLedger):
        raise TypeError("A ledger in memory takes over another one in memory alone.")
    return ledger._memory
