"""The words of a store's passages."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from typing_extensions import override

from cragside.ports.models import Vocabulary
from cragside.store.store import Store


@dataclass(frozen=True, slots=True)
class StoreVocabulary(Vocabulary):
    """As full-text search has them."""

    store: Store

    @override
    async def held(self, terms: Collection[str]) -> Mapping[str, int]:
        counts: Mapping[str, int] = await self.store.engine.chunks_vdb.held(terms)
        return counts

    @override
    async def passage_with(self, words: str) -> str:
        ids = await self.store.engine.chunks_vdb.worded(words, 1)
        known = await self.store.ledger.passages_by_id(ids)
        return next((passage.text for _, passage in known.values()), "")
