"""The knowledge base of one workspace: find passages by LightRAG's graph, by vectors and by words."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from cragside.domain.dating import date_of
from cragside.domain.document import SourceText
from cragside.domain.errors import CragsideError, ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.indexing import DocumentRecord, Passage, payload_of
from cragside.domain.knowledge import Indexed, KnowledgeStatus
from cragside.domain.languages import crosses_languages, foreign_question
from cragside.domain.outcome import leave_out
from cragside.domain.query import EVERYTHING, Filter, Keywords, Mode, Query, SimilaritySearch, least_similarity
from cragside.domain.reading import Reading
from cragside.domain.verdict import DEFAULT_THRESHOLD, DecisionPolicy, document_of_evidence, varied
from cragside.ports.clock import SYSTEM_CLOCK
from cragside.ports.models import RelevanceGrader
from cragside.ports.rag_repository import RagRepository
from cragside.store.errors import LedgerError, StoreRemoved, failing_as_unavailable
from cragside.store.ledger import Ledger
from cragside.store.library import accept
from cragside.store.lightrag import QueryParam
from cragside.store.open_store import Store, StoreAccess, StoreReplaced
from cragside.store.part_indexer import mark_failed, work_on
from cragside.store.reading import read_passages
from cragside.store.storages import VectorStorage

Near = tuple[DocumentRecord, Passage, float]
Vector = npt.NDArray[np.float32]

# Passages that are read at a time when a filter may refuse them; reading one costs 30 µs or so.
_BATCH = 100


class SimilarPassages:
    """Searches the passages of one store. Cosines are exact: every vector is looked at."""

    def __init__(self, ledger: Ledger, vectors: VectorStorage) -> None:
        self._ledger = ledger
        self._vectors = vectors

    async def find(self, search: SimilaritySearch) -> list[Near]:
        """Find at most `limit` passages with their cosine (0..1), nearest first or as `mmr` chose them."""
        question = await self._embedded(search.text)
        # Similarities are at least 0, but cosines may be negative: a minimum of 0 excludes nothing.
        least = search.threshold or -1.0
        if search.strategy == "similarity":
            return await self._admitted(question, least, search.filter, search.limit)
        fetched = await self._admitted(question, least, search.filter, max(search.fetch, search.limit))
        vectors = await self._vectors.get_vectors_by_ids([passage.id for _, passage, _ in fetched])
        fetched = [found for found in fetched if found[1].id in vectors]
        return [fetched[index] for index in _diverse(question, [vectors[each[1].id] for each in fetched], search)]

    async def compare(self, text: str, passages: Sequence[str]) -> dict[str, float]:
        """Return the cosine (0..1) of a text to each of these passages, by their ids."""
        question = await self._embedded(text)
        vectors = await self._vectors.get_vectors_by_ids(list(passages))
        return {key: _bounded(float(vector @ question)) for key, vector in vectors.items()}

    async def _embedded(self, text: str) -> Vector:
        embedded = await self._vectors.embedding_func([text], context="query")
        question: Vector = np.asarray(embedded, np.float32)[0]
        return question

    async def _admitted(self, question: Vector, least: float, wanted: Filter, limit: int) -> list[Near]:
        """Return the first `limit` that the filter lets through; of equal texts the first one."""
        found: dict[str, Near] = {}
        size = _BATCH if wanted.must else max(limit, 1)
        async for batch in self._vectors.nearest(question, least=least, wanted=wanted, size=size):
            known = await self._ledger.passages_by_id([key for key, _ in batch])
            for key, cosine in batch:
                if key in known and (not wanted.must or wanted.admits(payload_of(*known[key]))):
                    record, passage = known[key]
                    found.setdefault(passage.text, (record, passage, _bounded(cosine)))
                if len(found) >= limit:
                    return list(found.values())
        return list(found.values())


def _bounded(cosine: float) -> float:
    return min(max(cosine, 0.0), 1.0)


def _diverse(question: Vector, vectors: list[Any], search: SimilaritySearch) -> list[int]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance  # few ask for it

    if not vectors:
        return []
    chosen: Any = maximal_marginal_relevance(question, vectors, lambda_mult=search.balance, k=search.limit)
    return [int(index) for index in chosen]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Knows the words of the passages in a store, as full-text search has them."""

    store: Store

    async def held(self, terms: Collection[str]) -> Mapping[str, int]:
        """Count the passages that have each of these terms of full-text search. Terms that none has are left out."""
        counts: Mapping[str, int] = await self.store.engine.chunks_vdb.held(terms)
        return counts

    async def passage_with(self, words: str) -> str:
        """Return the passage that these words find first, "" if none has them."""
        ids = await self.store.engine.chunks_vdb.worded(words, 1)
        known = await self.store.ledger.passages_by_id(ids)
        return next((passage.text for _, passage in known.values()), "")


# Reads a question with the nearest words of the vocabulary in place of those that it lacks.
Correct = Callable[[str, Vocabulary], Awaitable[Reading]]
# Adds to a reading the abbreviations that these passages explain, and what they stand for.
Explain = Callable[[Reading, Sequence[str]], Reading]

# LightRAG refuses shorter queries.
_SHORTEST_QUERY = 3
# Entities and relations looked up for a query, and tokens that LightRAG may fill with their descriptions. All of it
# only leads to passages; more cost more and changed no route of the evals.
_RELATED = 3
_DESCRIPTION_TOKENS = 3000
# Candidates beyond those asked for, so that the ranking has a choice.
_RESERVE = 8
# Passages that a search by words finds for each that is wanted, so that several documents are among them.
_WIDE = 3
# Documents that are indexed at the same time.
_AT_ONCE = 16
# Candidates that `get_relevant_documents` grades.
_GRADED = 10


class LightRagRepository(RagRepository):
    """Retrieves in any of LightRAG's modes with keywords given, so that a query costs one embedding call and no other.

    LightRAG joins passages from vectors and graph without scores. `ranker`, a cheap grader, puts them in order.
    `language_of` gives the code of a question's language, None if it is not sure.
    """

    def __init__(
        self,
        access: StoreAccess,
        *,
        keywords_of: Callable[[str], Keywords],
        language_of: Callable[[str], str | None],
        correct: Correct,
        explain: Explain,
        ranker: RelevanceGrader,
        saved_queries: int,
    ) -> None:
        self._access = access
        self._keywords_of = keywords_of
        self._language_of = language_of
        self._correct = correct
        self._explain = explain
        self._ranker = ranker
        self._saved_queries = saved_queries

    @override
    async def save_query(self, query: Query) -> None:
        """Remember a query. Where there is no store to write, remember nothing."""

        async def save(store: Store) -> None:
            if store.ledger.driver.read_only:
                return
            try:
                await store.ledger.save_query(query, most=self._saved_queries)
            except StoreRemoved as error:
                raise StoreReplaced from error
            except LedgerError as error:
                message = f"The query could not be recorded: {error.reason}."
                raise ServiceUnavailable("knowledge_base", message) from error.__cause__

        if self._saved_queries:
            await self._access.searched(save, otherwise=None)

    @override
    async def get_query(self, query_id: str) -> Query | None:
        store = await self._access.existing()
        return await store.ledger.query(query_id) if store else None

    @override
    async def save_documents(self, documents: Sequence[SourceText]) -> list[Indexed]:
        self._access.check_writable()
        store = await self._access.create()
        turns = asyncio.Semaphore(_AT_ONCE)

        async def save(document: SourceText) -> Indexed:
            async with turns, failing_as_unavailable():
                return await _saved(store, document)

        last = {document.source: document for document in documents}
        outcomes = dict(zip(last, await asyncio.gather(*map(save, last.values())), strict=True))
        return [outcomes[document.source] for document in documents]

    @override
    async def retrieve(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> list[Document]:
        """Find candidates, most promising first.

        A text can be found before the graph knows it: where `local`, `global` and `hybrid` come upon nothing, vectors
        are searched as in `naive`. While the embedding model fails, passages are found by their words.
        """
        return (await self.look_up(query, limit=limit, mode=mode, wanted=wanted))[1]

    @override
    async def look_up(
        self, query: str, *, limit: int, mode: Mode = "mix", wanted: Filter = EVERYTHING
    ) -> tuple[Reading, list[Document]]:
        async def searched(store: Store) -> tuple[Reading, list[Document]]:
            found = await self._retrieved(store, query, limit, mode, wanted)
            # The search has counted the question's words, so reading costs a round trip only where one is missing.
            reading = await self._correct(query, Vocabulary(store))
            if reading.text != query:
                found = await self._retrieved(store, reading.text, limit, mode, wanted)
            reading = self._explain(reading, [each.whole for each in found])
            if reading.equal:
                more = [await self._retrieved(store, other, limit, mode, wanted) for other in reading.others]
                every = chain(found, *more)
                found = await self._ranked(reading, list({each.content: each for each in every}.values()))
            if not found or (found[0].score or 0.0) <= DEFAULT_THRESHOLD:
                await self._tell_language(store, reading.text, found)
            return reading, varied(found, limit, document_of_evidence)

        with _failing_as_unavailable():
            return await self._access.searched(searched, otherwise=(Reading(query), list[Document]()))

    async def _retrieved(self, store: Store, query: str, limit: int, mode: Mode, wanted: Filter) -> list[Document]:
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
        try:
            found = await _candidates(store, query, parameters, wanted)
            if not found and mode not in ("naive", "mix"):
                found = await _candidates(store, query, replace(parameters, mode="naive"), wanted)
        except ServiceUnavailable as error:
            if error.component != "embedder":
                raise
            leave_out("embedder", f"{error.message.rstrip('.')}. Passages were found by their words alone.")
            found = await _found_by_words(store, query, limit + _RESERVE, wanted)
        return await self._ranked(Reading(query), found)

    @override
    async def similar(self, search: SimilaritySearch) -> list[Document]:
        store = await self._access.existing()
        if store is None:
            return []
        with _failing_as_unavailable():
            await store.embedder.prepare()
            if search.threshold is None:
                search = replace(search, threshold=least_similarity(store.embedding_model))
            found = await _similar_passages(store).find(search)
            return [document_of(record, passage).compared(cosine) for record, passage, cosine in found]

    @override
    async def similarities(self, query: str, passages: Sequence[str]) -> dict[str, float]:
        store = await self._access.existing()
        if store is None or not passages:
            return {}
        with _failing_as_unavailable():
            await store.embedder.prepare()
            return await _similar_passages(store).compare(query, passages)

    @override
    async def get_relevant_documents(self, query: str, threshold: float = 0.6) -> list[Document]:
        candidates = await self.retrieve(query, limit=_GRADED)
        return [document for document in candidates if (document.score or 0.0) > threshold]

    @override
    async def status(self) -> KnowledgeStatus:
        store = await self._access.existing()
        if store is None:
            return KnowledgeStatus(self._access.workspace, "not chosen yet", 0, 0, 0, 0)
        return await store.ledger.status(store.embedding_model)

    @override
    async def version(self) -> str:
        store = await self._access.existing()
        try:
            return await store.ledger.driver.state() if store else ""
        except LedgerError as error:
            message = f"The store cannot be read: {error.reason}."
            raise ServiceUnavailable("knowledge_base", message) from error.__cause__

    async def _tell_language(self, store: Store, query: str, found: Sequence[Document]) -> None:
        """Note that a question that found no more than this is in another language than documents, if so."""
        language = self._language_of(query)
        if language is None or crosses_languages(store.embedding_model):
            return
        # To count the languages takes two round trips, and of a large store a third of a second.
        near = found if found and (found[0].score or 0.0) > DecisionPolicy().weak else ()
        if any(self._language_of(each.content) == language for each in near):
            return
        if reason := foreign_question(language, await store.languages()):
            leave_out("language", reason)

    async def _ranked(self, reading: Reading, candidates: Sequence[Document]) -> list[Document]:
        scores = await self._ranker.grade_read(reading, candidates)
        graded = [document.graded(score) for document, score in zip(candidates, scores, strict=True)]
        return sorted(graded, key=lambda document: -(document.score or 0.0))


def _similar_passages(store: Store) -> SimilarPassages:
    return SimilarPassages(store.ledger, store.engine.chunks_vdb)


async def _saved(store: Store, document: SourceText) -> Indexed:
    accepted = await accept(store, document, enrich=True, track="", rename=False)
    if accepted.record.status == "enriched":
        return Indexed(document.name, "unchanged", passages=accepted.record.passages)
    for task in accepted.tasks:
        try:
            await work_on(store, task)
        except LedgerError:
            raise  # it is not the text that fails
        except CragsideError as error:
            if part := await store.ledger.part(task):
                await mark_failed(store, task, part, str(error))
            return Indexed(document.name, "failed", str(error))
    status = "updated" if accepted.outcome == "changed" else "indexed"
    return Indexed(document.name, status, passages=accepted.record.passages)


async def _candidates(store: Store, query: str, parameters: QueryParam, wanted: Filter) -> list[Document]:
    return _distinct(await read_passages(store, query, parameters), wanted)


async def _found_by_words(store: Store, query: str, most: int, wanted: Filter) -> list[Document]:
    ids = await store.engine.chunks_vdb.worded(query, _WIDE * most)
    known = await store.ledger.passages_by_id(ids)
    found = _distinct((known[key] for key in ids if key in known), wanted)
    return varied(found, most, document_of_evidence)


def _distinct(found: Iterable[tuple[DocumentRecord, Passage]], wanted: Filter) -> list[Document]:
    # Several documents may hold the same text; as evidence it counts once.
    distinct: dict[str, Document] = {}
    for record, passage in found:
        if not wanted.must or wanted.admits(payload_of(record, passage)):
            distinct.setdefault(passage.text, document_of(record, passage))
    return list(distinct.values())


@contextmanager
def _failing_as_unavailable() -> Iterator[None]:
    """Raise any failure of LightRAG as an outage that names its kind."""
    try:
        yield
    except CragsideError:
        raise
    except Exception as error:
        raise ServiceUnavailable("knowledge_base", f"The knowledge base failed: {type(error).__name__}.") from error


def document_of(record: DocumentRecord, passage: Passage) -> Document:
    """Return a passage as evidence. The metadata has what its citation shows."""
    shown = {
        "filename": record.label,
        "page": passage.page,
        "section": passage.section or None,
        "fileType": record.file_type,
        "chunkIndex": passage.index,
        "totalChunks": record.passages,
        "documentId": record.id,
        "uploadTimestamp": record.created_at,
        "date": date_of(record, passage, SYSTEM_CLOCK.now().date()),
    }
    return Document(
        id=passage.id,
        content=passage.text,
        source="local",
        title=record.label if record.title == record.name else record.title,
        url=next((place for place in (record.source, record.name) if place.startswith(("http://", "https://"))), None),
        metadata={name: value for name, value in shown.items() if value is not None},
        stored=(record, passage),
    )
