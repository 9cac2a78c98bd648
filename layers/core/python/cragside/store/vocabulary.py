"""Looks up words in the passages of a store."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from cragside.domain.reading import Reading
from cragside.store.store import Store


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
