"""Cut texts into words for full-text search, and rank what words and vectors find (ADR 2)."""

import itertools
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# Weights of the min-max normalised rankings; measured best of those tried, see docs/adr/0002.
LEXICAL_WEIGHT = 0.6
COSINE_WEIGHT = 0.4
# Of a question's words, the rarest that together so many passages have, or so large a share of them, are the rare ones.
FEW_PASSAGES = 200
RARE_SHARE = 0.02
# Two others count if they weigh at least so much of what the commonest rare word does.
PAIR_SHARE = 2 / 3
# Words longer than this cannot be words; they would only make the query string long.
_SOUGHT_WORD = re.compile(r"\w{1,40}")
MOST_WORDS = 32


def words_of(question: str) -> list[str]:
    """The distinct words of a question that full-text search looks for."""
    return list(dict.fromkeys(_SOUGHT_WORD.findall(question)))[:MOST_WORDS]


class Sought(NamedTuple):
    """Condition on the passages that `words` rank: they have a rare word, or a word and one of its partners in `pairs`.

    Each list is in order from the rarest to the commonest.
    """

    words: list[str]
    rare: list[str]
    pairs: list[tuple[str, list[str]]]


def sought(words: Sequence[str], spread: Mapping[str, int], passages: int, most: int) -> Sought:
    """The passages among which those are that rank best by all words, `most` of them.

    `spread` says how many passages have a word. What it leaves out counts as rare.
    """
    unknown = [word for word in words if word not in spread]
    known = sorted((word for word in words if word in spread), key=lambda word: (spread[word], word))
    # In BM25, a word that more than half of the passages have weighs nothing.
    weighing = [word for word in known if spread[word] <= passages / 2] or known[:1]
    few = max(RARE_SHARE * passages, FEW_PASSAGES)
    together = itertools.accumulate(spread[word] for word in weighing)
    rare = sum(held <= few or held - spread[word] < most for word, held in zip(weighing, together, strict=True))
    weights = {word: _weight(spread[word], passages) for word in weighing}
    least = PAIR_SHARE * min((weights[word] for word in weighing[:rare]), default=0)
    pairs = []
    for number, word in enumerate(others := weighing[rare:], start=1):
        if beside := [other for other in others[number:] if weights[word] + weights[other] >= least]:
            pairs.append((word, beside))
    return Sought(unknown + weighing, unknown + weighing[:rare], pairs)


def _weight(holders: int, passages: int) -> float:
    return max(math.log((passages - holders + 0.5) / (holders + 0.5)), 1e-6)


def fused(cosine: dict[int, float], lexical: dict[int, float]) -> list[int]:
    """Keys of both rankings, best weighted sum of their normalised scores first, then the smallest key."""
    by_cosine, by_words = _normalised(cosine), _normalised(lexical)
    # Databases add up the words of a passage in any order, which changes the last digits.
    ranked = sorted(
        (-round(COSINE_WEIGHT * by_cosine.get(key, 0.0) + LEXICAL_WEIGHT * by_words.get(key, 0.0), 9), key)
        for key in {**cosine, **lexical}
    )
    return [key for _, key in ranked]


def _normalised(scores: dict[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (value - low) / (high - low) if high > low else 1.0 for key, value in scores.items()}


_WORD = re.compile(r"\w+")
# A longer word cannot be one, and the words of a passage have to fit into a megabyte.
_LONGEST = 200


def words_in(text: str) -> list[str]:
    """Return the words of a text in their order, in lower case and without accents."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return [word[:_LONGEST] for word in _WORD.findall(plain)]


def counted(text: str, store: int) -> tuple[str, str, int]:
    """Return a text's words as a `tsvector` for a store, the counts of repeated ones as JSON, and its length."""
    words = words_in(text)
    times = Counter(words)
    several = {word: count for word, count in times.items() if count > 1}
    return " ".join(quoted(word, store) for word in times), json.dumps(several, ensure_ascii=False), len(words)


def quoted(word: str, store: int) -> str:
    """Return a word as it stands in a store's `tsvector`, or in a `tsquery` for it."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{store}:{escaped}'"
