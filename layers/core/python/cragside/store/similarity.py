"""Finds passages by the cosine between their vector and a question's, among those that a filter lets through."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cragside.domain.indexing import DocumentRecord, Passage, payload_of
from cragside.domain.query import Filter, SimilaritySearch
from cragside.store.ledger.ledger import Ledger
from cragside.store.storages.interface import VectorStorage

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
