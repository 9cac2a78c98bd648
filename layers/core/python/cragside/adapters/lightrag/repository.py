"""The knowledge base of one workspace: LightRAG's graph and vectors behind the `RagRepository` port."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from lightrag import QueryParam

from cragside.adapters.lightrag import library
from cragside.adapters.lightrag.accepting import accept
from cragside.adapters.lightrag.chunking import storable
from cragside.adapters.lightrag.ledger.failures import LedgerError, failing_as_unavailable
from cragside.adapters.lightrag.part_indexer import embed, extend_graph, mark_failed
from cragside.adapters.lightrag.similarity import SimilarPassages
from cragside.adapters.lightrag.store import Store
from cragside.adapters.lightrag.sweeping import sweep
from cragside.domain.document import Document, SourceText
from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.domain.filter import EVERYTHING, Filter
from cragside.domain.indexing import DocumentRecord, Passage, Task
from cragside.domain.payload import payload_of
from cragside.domain.query import Query
from cragside.domain.search import Mode, SimilaritySearch
from cragside.ports.rag_repository import Indexed, KnowledgeStatus, RagRepository
from cragside.ports.relevance_grader import RelevanceGrader

# LightRAG refuses shorter queries.
_SHORTEST_QUERY = 3
# Entities and relations looked up for a query, edges followed from each entity, and tokens that LightRAG may fill
# with their descriptions. All of it only leads to passages; more cost more and changed no route of the evals.
_RELATED = 3
_EDGES_PER_ENTITY = 2
_DESCRIPTION_TOKENS = 3000
# Candidates beyond those asked for, so that the ranking has a choice.
_RESERVE = 2
# Documents that are indexed at the same time.
_AT_ONCE = 16
# Candidates that `get_relevant_documents` grades.
_GRADED = 10


class Keywords(Protocol):
    """What LightRAG searches entities (`low`) and relations (`high`) by."""

    @property
    def low(self) -> list[str]:
        """Names of things."""
        ...

    @property
    def high(self) -> list[str]:
        """Subjects."""
        ...


class LightRagRepository(RagRepository):
    """Retrieves in any of LightRAG's modes with keywords given, so that a query costs one embedding call and no other.

    LightRAG joins passages from vectors and graph without scores; `ranker`, a cheap grader, puts them in order. Writers
    of other processes are kept out by a lock file, readers are not.
    """

    def __init__(
        self,
        store: Store,
        *,
        keywords_of: Callable[[str], Keywords],
        ranker: RelevanceGrader,
        saved_queries: int,
    ) -> None:
        self.store = store
        self._reader = store.engine.reader(_EDGES_PER_ENTITY)
        self._similar = SimilarPassages(store.ledger, store.engine.chunks_vdb)
        self._keywords_of = keywords_of
        self._ranker = ranker
        self._saved_queries = saved_queries

    @property
    def replaced(self) -> bool:
        """Whether somebody has replaced the store's whole content, so that it has to be opened anew."""
        return self.store.replaced

    async def save_query(self, query: Query) -> None:
        """Remember a query; beyond the configured number the oldest are forgotten."""
        if self._saved_queries == 0:
            return
        try:
            self.store.ledger.save_query(query, most=self._saved_queries)
        except LedgerError as error:
            said = f"The query could not be recorded: {error.reason}."
            raise ServiceUnavailable("knowledge_base", said) from error.__cause__

    async def get_query(self, query_id: str) -> Query | None:
        """A remembered query, or None."""
        return self.store.ledger.query(query_id)

    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        """Index whole texts, several at a time; see the port for what happens to known ones."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def save(document: SourceText) -> Indexed:
            async with turns:
                return await self._saved(document)

        last = {document.source: document for document in documents}
        outcomes = dict(zip(last, await asyncio.gather(*map(save, last.values())), strict=True))
        return [outcomes[document.source] for document in documents]

    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """At most `limit` passages, most promising first by the cheap ranking.

        A text can be found before the graph knows it: where `local`, `global` and `hybrid` come upon nothing, vectors
        are searched as in `naive`.
        """
        if len(query.strip()) < _SHORTEST_QUERY:
            query = f"what is {query}"
        keywords = self._keywords_of(query)
        parameters = QueryParam(
            mode=mode,
            top_k=_RELATED,
            chunk_top_k=limit + _RESERVE,
            max_entity_tokens=_DESCRIPTION_TOKENS,
            max_relation_tokens=_DESCRIPTION_TOKENS,
            hl_keywords=keywords.high or keywords.low or [query],
            ll_keywords=keywords.low or keywords.high or [query],
            enable_rerank=False,
        )
        with _failing_as_unavailable():
            await self.store.embedder.prepare()
            candidates = await self._candidates(query, parameters, wanted)
            if not candidates and mode not in ("naive", "mix"):
                candidates = await self._candidates(query, replace(parameters, mode="naive"), wanted)
            return (await self._ranked(query, candidates))[:limit]

    async def similar(self, search: SimilaritySearch) -> list[Document]:
        """Passages by their exact cosine to the question; see `SimilaritySearch`."""
        with _failing_as_unavailable():
            await self.store.embedder.prepare()
            found = await self._similar.find(search)
            return [document_of(record, passage).graded(cosine) for record, passage, cosine in found]

    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        """Passages whose relevance, by the repository's own grader, is above the threshold, best first."""
        candidates = await self.retrieve(query, limit=_GRADED)
        return [document for document in candidates if (document.score or 0.0) > threshold]

    async def delete_document(self, source: str) -> bool:
        """Forget the document of a source and what only it contributed to the graph."""
        known = self.store.ledger.sourced(storable(source))
        return known is not None and await library.delete(self.store, known.id)

    def replace_by(self, folder: Path) -> None:
        """Take over the store of another folder, for every process that has this one open. Only while `writing`."""
        self.store.ledger.replace_by(folder)

    async def status(self) -> KnowledgeStatus:
        """Sizes of the workspace, all of one moment. Documents are counted by the status that a listing shows."""
        return self.store.ledger.status(self.store.embedding_model)

    async def version(self) -> str:
        """Another one after every change of the store; queries saved by other processes count as such."""
        try:
            return self.store.ledger.state()
        except LedgerError as error:
            said = f"The store cannot be read: {error.reason}."
            raise ServiceUnavailable("knowledge_base", said) from error.__cause__

    async def close(self) -> None:
        """Flush and close the store."""
        await self.store.close()

    async def _saved(self, document: SourceText) -> Indexed:
        """Accept, enrich and embed a text, in this order: the version before it is served until all of it succeeded."""
        async with failing_as_unavailable():
            accepted = await accept(self.store, document, enrich=True, track="", rename=False)
            complete = accepted.record.status == "enriched"
            for task in sorted(accepted.tasks, key=lambda task: task.stage, reverse=True):
                try:
                    await self._do(task)
                except LedgerError:
                    raise  # it is not the text that fails
                except CragsideError as error:
                    return await self._given_up(document.name, task, str(error))
            status = {"new": "indexed", "changed": "updated"}.get(accepted.outcome, "indexed")
            return Indexed(document.name, "unchanged" if complete else status, passages=accepted.record.passages)

    async def _do(self, task: Task) -> None:
        part = self.store.ledger.part(task)
        if part is not None:
            await (embed if task.stage == "embed" else extend_graph)(self.store, task, part)
            await sweep(self.store)

    async def _given_up(self, name: str, task: Task, reason: str) -> Indexed:
        if await library.go_back(self.store, task.document_id):
            return Indexed(name, "failed", f"{reason} (the previous version is kept)")
        if part := self.store.ledger.part(task):
            await mark_failed(self.store, task, part, reason)
        return Indexed(name, "failed", reason)

    async def _candidates(self, query: str, parameters: QueryParam, wanted: Filter) -> list[Document]:
        answer = await self._reader.aquery_data(query, parameters)
        chunks = answer.get("data", {}).get("chunks", [])
        known = self.store.ledger.passages_by_id([chunk["chunk_id"] for chunk in chunks])
        # Several documents may hold the same text; as evidence it counts once.
        distinct: dict[str, Document] = {}
        for key in (chunk["chunk_id"] for chunk in chunks):
            if key in known and (not wanted.must or wanted.admits(payload_of(*known[key]))):
                distinct.setdefault(known[key][1].text, document_of(*known[key]))
        return list(distinct.values())

    async def _ranked(self, query: str, candidates: Sequence[Document]) -> list[Document]:
        scores = await self._ranker.grade(query, candidates)
        graded = [document.graded(score) for document, score in zip(candidates, scores, strict=True)]
        return sorted(graded, key=lambda document: -(document.score or 0.0))


@contextmanager
def _failing_as_unavailable() -> Iterator[None]:
    """Whatever fails in LightRAG, as an outage that names its kind."""
    try:
        yield
    except CragsideError:
        raise
    except Exception as error:
        raise ServiceUnavailable("knowledge_base", f"The knowledge base failed: {type(error).__name__}.") from error


def document_of(record: DocumentRecord, passage: Passage) -> Document:
    """A passage as evidence: what its citation shows is in the metadata."""
    shown = {
        "filename": record.label,
        "page": passage.page,
        "section": passage.section or None,
        "fileType": record.file_type,
        "chunkIndex": passage.index,
        "totalChunks": record.passages,
        "documentId": record.id,
        "uploadTimestamp": record.created_at,
    }
    return Document(
        id=passage.id,
        content=passage.text,
        source="local",
        title=record.label if record.title == record.name else record.title,
        url=next((told for told in (record.source, record.name) if told.startswith(("http://", "https://"))), None),
        metadata={name: value for name, value in shown.items() if value is not None},
    )
