"""Finds the words of a question in passages."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.document import Document


class WordMatcher(Protocol):
    """Compares words in any inflection."""

    async def matches(self, query: str, documents: Sequence[Document]) -> list[tuple[str, ...]]:
        """The query's content words, in lower case, that each document or its title has, in the query's order.

        Raises `ServiceUnavailable("grader", ...)`.
        """
