"""A search of a workspace's passages, without grading or correction."""

from dataclasses import dataclass, field
from typing import Literal

from cragside.domain.filter import Filter

Mode = Literal["local", "global", "hybrid", "naive", "mix"]
Strategy = Literal["similarity", "mmr"]
DEFAULT_SIMILARITY = 0.7
DEFAULT_FETCH = 20
DEFAULT_BALANCE = 0.5


@dataclass(frozen=True, slots=True)
class SimilaritySearch:
    """Passages whose vector has a cosine of at least `threshold` with the question's.

    `mmr` chooses `limit` of the `fetch` nearest passages (or of the `limit` nearest, if that is more). `balance`
    (lambda) weighs relevance (1) against diversity (0).
    """

    text: str
    limit: int = 5
    threshold: float = DEFAULT_SIMILARITY
    strategy: Strategy = "similarity"
    fetch: int = DEFAULT_FETCH
    balance: float = DEFAULT_BALANCE
    filter: Filter = field(default_factory=Filter)
