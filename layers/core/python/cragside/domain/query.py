"""Questions, the command before them, and searches."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from cragside.domain.errors import ValidationError

DEFAULT_PREFIX = "/rag"


# Follows the command of a prompt that asks why.
WHY = "?"


@lru_cache(maxsize=16)
def _pattern(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{re.escape(prefix)}(?=\s|$)\s*", re.IGNORECASE)


def question_of(text: str, prefix: str = DEFAULT_PREFIX) -> str | None:
    """Return the text after the command, or None if the text does not begin with the command.

    The command may follow blanks, is case-insensitive, and must be a whole word (`/rag`, not `/ragtime`).
    """
    match = _pattern(prefix).match(text)
    return text[match.end() :].strip() if match else None


def asks_why(text: str, prefix: str = DEFAULT_PREFIX) -> str | None:
    """Return the text after the command with a question mark (`/rag?`), or None if the text does not begin with it."""
    return question_of(text, prefix + WHY)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the payload's value at `key`. Dots lead into objects.

    It `equals` `value` or is a list with it, `contains` it in any case, `begins` with it, or is `absent`.
    """

    key: str
    value: Any
    how: Literal["equals", "contains", "begins", "absent"] = "equals"

    def holds(self, payload: Mapping[str, Any]) -> bool:
        """Tell if the payload meets the condition."""
        found: Any = payload
        for name in self.key.split("."):
            if not isinstance(found, Mapping) or name not in found:
                return self.how == "absent"
            found = found[name]
        if self.how == "absent":
            return False
        if self.how == "begins":
            return isinstance(found, str) and found.startswith(str(self.value))
        if self.how == "contains":
            return isinstance(found, str) and str(self.value).lower() in found.lower()
        if isinstance(found, list):
            return self.value in found
        return bool(found == self.value) and isinstance(found, bool) == isinstance(self.value, bool)


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions must hold. Without conditions, everything passes."""

    must: tuple[Condition, ...] = ()

    def admits(self, payload: Mapping[str, Any]) -> bool:
        """Tell if the payload meets all conditions."""
        return all(condition.holds(payload) for condition in self.must)


EVERYTHING = Filter()


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
    """Return the least cosine that fits an embedding model. Names are Ollama's, with or without a tag."""
    return _LEAST_SIMILARITY.get(embedding_model.partition(":")[0], _LEAST_OF_OTHERS)


DEFAULT_WORKSPACE = "default"
LONGEST_QUERY = 32_000  # characters; searches process the text on the event loop


@dataclass(frozen=True, slots=True)
class Query:
    """A question, without its command, asked in one workspace. `created_at` is in UTC."""

    id: str
    text: str
    workspace: str = DEFAULT_WORKSPACE
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if not self.id:
            raise ValidationError("A query needs an id.")
        if not self.text.strip():
            raise ValidationError("The command has no question. Write it after the command: /rag what is ...?")


def refuse_overlong_query(text: str) -> None:
    """Raises `ValidationError` if the text is too long for a search."""
    if len(text) > LONGEST_QUERY:
        raise ValidationError(
            f"The query has {len(text)} characters; a search takes at most {LONGEST_QUERY}. Shorten it.",
            field="query",
            limit=LONGEST_QUERY,
        )


def ask(identifier: str, text: str, *, workspace: str, limit: int) -> Query:
    """Return a query of at most `limit` characters. Raises `ValidationError` for a longer one."""
    if len(text) > limit:
        raise ValidationError(
            f"The question has {len(text)} characters; the limit is {limit}.", field="prompt", limit=limit
        )
    return Query(id=identifier, text=text, workspace=workspace)


@dataclass(frozen=True, slots=True)
class Keywords:
    """LightRAG matches `low` (names, things, numbers) with entities, and `high` (themes) with relations.

    Both have keywords unless the question has no words.
    """

    low: list[str]
    high: list[str]
