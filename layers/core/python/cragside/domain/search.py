"""A search of a workspace's passages, without grading or correction."""

from dataclasses import dataclass, field
from typing import Literal

from cragside.domain.filter import Filter

Mode = Literal["local", "global", "hybrid", "naive", "mix"]
Strategy = Literal["similarity", "mmr"]
Ranking = Literal["relevance", "similarity"]
DEFAULT_FETCH = 20
DEFAULT_BALANCE = 0.5

# The least cosine, by embedding model: the largest of 0.05, 0.10, ... that keeps nine of ten right passages of the
# training half of CLAP-NQ, with and without their titles (`evals/ranking.py`).
_LEAST_SIMILARITY = {"wordllama-256": 0.3, "all-minilm": 0.4}
# Of a model that was not measured, too many passages are better than none.
_LEAST_OF_OTHERS = 0.3


@dataclass(frozen=True, slots=True)
class SimilaritySearch:
    """Passages whose vector has a cosine of at least `threshold` with the question's.

    A `threshold` of None is the one that fits the store's embedding model. `mmr` chooses `limit` of the `fetch` nearest
    passages (or of the `limit` nearest, if that is more). `balance` (lambda) weighs relevance (1) against diversity
    (0).
    """

    text: str
    limit: int = 5
    threshold: float | None = None
    strategy: Strategy = "similarity"
    fetch: int = DEFAULT_FETCH
    balance: float = DEFAULT_BALANCE
    filter: Filter = field(default_factory=Filter)


def least_similarity(embedding_model: str) -> float:
    """The least cosine that fits an embedding model. Names are Ollama's, with or without a tag."""
    return _LEAST_SIMILARITY.get(embedding_model.partition(":")[0], _LEAST_OF_OTHERS)
