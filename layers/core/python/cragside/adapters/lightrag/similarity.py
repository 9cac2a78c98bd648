"""Passages by the cosine between their vector and a question's, among those that a filter lets through."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cragside.adapters.lightrag.ledger.interface import Ledger
from cragside.adapters.lightrag.storages.sqlite.vectors import SqliteVectorStorage
from cragside.domain.filter import Filter
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.payload import payload_of
from cragside.domain.search import SimilaritySearch

Found = tuple[DocumentRecord, Passage, float]
Vector = npt.NDArray[np.float32]

# As many of the nearest are tried one by one before the ledger is asked which passages the filter could let through at
# all: it reads the whole catalogue for that.
_TRIED_FIRST = 200
# Passages that are read at a time; reading one costs 30 µs or so.
_BATCH = 100


class SimilarPassages:
    """Searches the passages of one store. Cosines are exact: every vector is looked at."""

    def __init__(self, ledger: Ledger, vectors: SqliteVectorStorage) -> None:
        self._ledger = ledger
        self._vectors = vectors

    async def find(self, search: SimilaritySearch) -> list[Found]:
        """At most `limit` passages with their cosine (0..1), nearest first or in the order that `mmr` chose them."""
        embedded = await self._vectors.embedding_func([search.text], context="query")
        question = np.asarray(embedded, np.float32)[0]
        keys, cosines = self._vectors.nearest(question, search.threshold)
        if search.strategy == "similarity":
            return [found for _, found in await self._admitted(keys, cosines, search.filter, search.limit)]
        fetched = await self._admitted(keys, cosines, search.filter, max(search.fetch, search.limit))
        vectors = self._vectors.vectors([key for key, _ in fetched])
        return [fetched[index][1] for index in _diverse(question, vectors, search)]

    async def _admitted(
        self, keys: npt.NDArray[np.int64], cosines: Vector, wanted: Filter, limit: int
    ) -> list[tuple[int, Found]]:
        """The first `limit` that the filter lets through, with their keys; of equal texts the first one."""
        found = await self._first(keys[:_TRIED_FIRST], cosines[:_TRIED_FIRST], wanted, limit, {})
        if len(found) < limit and len(keys) > _TRIED_FIRST:
            keys, cosines = keys[_TRIED_FIRST:], cosines[_TRIED_FIRST:]
            if (possible := await self._ledger.candidates(wanted)) is not None:
                chosen = np.isin(keys, possible)
                keys, cosines = keys[chosen], cosines[chosen]
            found = await self._first(keys, cosines, wanted, limit, found)
        return list(found.values())

    async def _first(
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
            for key, cosine, (record, passage) in await self._read(batch, cosines[start : start + size].tolist()):
                if len(found) < limit and (not wanted.must or wanted.admits(payload_of(record, passage))):
                    found.setdefault(passage.text, (key, (record, passage, min(max(cosine, 0.0), 1.0))))
        return found

    async def _read(
        self, keys: Sequence[int], cosines: Sequence[float]
    ) -> list[tuple[int, float, tuple[DocumentRecord, Passage]]]:
        ids = self._vectors.ids_of(keys)
        passages = await self._ledger.passages_by_id(list(ids.values()))
        told = zip(keys, cosines, strict=True)
        return [(key, cosine, found) for key, cosine in told if (found := passages.get(ids.get(key, ""))) is not None]


def _diverse(question: Vector, vectors: Vector, search: SimilaritySearch) -> list[int]:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance  # few ask for it

    if not len(vectors):
        return []
    chosen: Any = maximal_marginal_relevance(question, list(vectors), lambda_mult=search.balance, k=search.limit)
    return [int(index) for index in chosen]
