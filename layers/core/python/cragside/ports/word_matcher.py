"""Finds the words of a question in passages."""

from collections.abc import Sequence
from typing import Protocol

from cragside.domain.document import Document


class WordMatcher(Protocol):
    """Compares words in any inflection."""

    async def matches(self, query: str, documents: Sequence[Document], *, near: bool = False) -> list[tuple[str, ...]]:
        """The query's content words, in lower case, that each document or its title has, in the query's order.

        With `near`, those of the title and of the place that has most of them.

        Raises `ServiceUnavailable("grader", ...)`.
        """
