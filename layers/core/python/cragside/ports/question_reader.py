"""Reads questions in the words of the documents."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from cragside.domain.reading import Reading


class Vocabulary(Protocol):
    """The words of the passages in a store."""

    async def held(self, terms: Collection[str]) -> Mapping[str, int]:
        """How many passages have each of these terms of full-text search. The rest are left out."""

    async def passage_with(self, words: str) -> str:
        """The passage that these words find first, "" if none has them."""


class QuestionReader(Protocol):
    """Knows how people misspell and abbreviate words."""

    async def read(self, question: str, vocabulary: Vocabulary) -> Reading:
        """The question with the nearest words of the vocabulary in place of those that it lacks."""

    def explained(self, reading: Reading, passages: Sequence[str]) -> Reading:
        """The reading with the abbreviations of its text that these passages explain, and with what they abbreviate."""
