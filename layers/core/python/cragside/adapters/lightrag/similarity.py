"""Passages by the cosine between their vector and a question's, among those that a filter lets through."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cragside.adapters.lightrag.ledger.sqlite.catalogue import Catalogue
from cragside.adapters.lightrag.ledger.sqlite.database import Database
from cragside.adapters.lightrag.storages.sqlite.vectors import SqliteVectorStorage
from cragside.domain.filter import Condition, Filter
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.payload import payload_of
from cragside.domain.search import SimilaritySearch

Found = tuple[DocumentRecord, Passage, float]
Vector = npt.NDArray[np.float32]

# As many of the nearest are tried one by one before SQL is asked which passages the filter could let through at all: it
# reads the whole catalogue for that.
_TRIED_FIRST = 200
# Passages that are read at a time; reading one costs 30 µs or so.
_BATCH = 100

_CANDIDATES = """
SELECT vector.seq FROM document JOIN chunk USING (version)
JOIN part ON part.version = chunk.version AND part.number = chunk.part
JOIN vector ON vector.namespace = 'chunks' AND vector.id = chunk.id
WHERE document.state <> 'gone' AND {}
"""
_METADATA = "document.metadata"
# Where the strings of a payload's fields are kept; those of other fields are in the metadata.
_COLUMNS = {
    "source": "document.name",
    "filename": "document.name",
    "title": "document.title",
    "fileType": "document.file_type",
    "docType": "document.doc_type",
    "documentId": "document.id",
    "uploadTimestamp": "document.created_at",
    "tier1": "document.tier1",
    "tier2": "chunk.tier2",
    "tier3": "part.tier3",
    "section": "chunk.section",
    "sections": "chunk.section",
    "enrichmentStatus": "part.enrichment",
}
_JSON = {_METADATA, "document.tier1", "chunk.tier2", "part.tier3"}
# No column holds their strings, or they have none.
_ELSEWHERE = {"text", "bytes", "chunkIndex", "totalChunks", "pageNumber"}


class SimilarPassages:
    """Searches the passages of one store. Cosines are exact: every vector is looked at."""

    def __init__(self, database: Database, catalogue: Catalogue, vectors: SqliteVectorStorage) -> None:
        self._database = database
        self._catalogue = catalogue
        self._vectors = vectors

    async def find(self, search: SimilaritySearch) -> list[Found]:
        """At most `limit` passages with their cosine (0..1), nearest first or in the order that `mmr` chose them."""
        embedded = await self._vectors.embedding_func([search.text], context="query")
        question = np.asarray(embedded, np.float32)[0]
        keys, cosines = self._vectors.nearest(question, search.threshold)
        if search.strategy == "similarity":
            return [found for _, found in self._admitted(keys, cosines, search.filter, search.limit)]
        fetched = self._admitted(keys, cosines, search.filter, max(search.fetch, search.limit))
        vectors = self._vectors.vectors([key for key, _ in fetched])
        return [fetched[index][1] for index in _diverse(question, vectors, search)]

    def _admitted(
        self, keys: npt.NDArray[np.int64], cosines: Vector, wanted: Filter, limit: int
    ) -> list[tuple[int, Found]]:
        """The first `limit` that the filter lets through, with their keys; of equal texts the first one."""
        found = self._first(keys[:_TRIED_FIRST], cosines[:_TRIED_FIRST], wanted, limit, {})
        if len(found) < limit and len(keys) > _TRIED_FIRST:
            keys, cosines = keys[_TRIED_FIRST:], cosines[_TRIED_FIRST:]
            if (possible := self._possible(wanted)) is not None:
                chosen = np.isin(keys, possible)
                keys, cosines = keys[chosen], cosines[chosen]
            found = self._first(keys, cosines, wanted, limit, found)
        return list(found.values())

    def _first(
        self,
        keys: npt.NDArray[np.int64],
        cosines: Vector,
        wanted: Filter,
        limit: int,
        found: dict[str, tuple[int, Found]],
    ) -> dict[str, tuple[int, Found]]:
        """What was `found`, by its text, and more."""
        size = _BATCH if wanted.must else limit
        for start in range(0, len(keys), max(size, 1)):
            if len(found) >= limit:
                break
            batch = keys[start : start + size].tolist()
            for key, cosine, (record, passage) in self._read(batch, cosines[start : start + size].tolist()):
                if len(found) < limit and (not wanted.must or wanted.admits(payload_of(record, passage))):
                    found.setdefault(passage.text, (key, (record, passage, min(max(cosine, 0.0), 1.0))))
        return found

    def _read(
        self, keys: Sequence[int], cosines: Sequence[float]
    ) -> Iterator[tuple[int, float, tuple[DocumentRecord, Passage]]]:
        ids = dict(self._database.within("SELECT seq, id FROM vector WHERE seq IN ({})", keys))
        passages = self._catalogue.passages_by_id(list(ids.values()))
        for key, cosine in zip(keys, cosines, strict=True):
            if (found := passages.get(ids.get(key, ""))) is not None:
                yield key, cosine, found

    def _possible(self, wanted: Filter) -> npt.NDArray[np.int64] | None:
        """Keys of the passages that may meet the conditions, and of a few that do not; None when SQL cannot tell."""
        clauses: list[str] = []
        values: list[str] = []
        for clause, value in filter(None, map(_clause, wanted.must)):
            clauses.append(clause)
            values.append(value)
        if not clauses:
            return None
        rows = self._database.all(_CANDIDATES.format(" AND ".join(clauses)), values)
        return np.fromiter((row[0] for row in rows), np.int64, len(rows))


def _clause(condition: Condition) -> tuple[str, str] | None:
    """SQL for a condition on a string: true wherever the string is, in the field or, within JSON, in another one."""
    root = condition.key.split(".")[0]
    if not isinstance(condition.value, str) or root in _ELSEWHERE:
        return None
    if condition.text and not condition.value.isascii():
        return None  # `lower()` of SQLite knows the 26 letters alone
    column = _COLUMNS.get(root, _METADATA)
    value = condition.value.lower() if condition.text else condition.value
    wanted = json.dumps(value)[1:-1] if column in _JSON else value
    return (f"instr(lower({column}), ?)" if condition.text else f"instr({column}, ?)"), wanted


def _diverse(question: Vector, vectors: Vector, search: SimilaritySearch) -> list[int]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance  # few ask for it

    if not len(vectors):
        return []
    chosen: Any = maximal_marginal_relevance(question, list(vectors), lambda_mult=search.balance, k=search.limit)
    return [int(index) for index in chosen]
