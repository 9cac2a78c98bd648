"""Full-text search and vectors, joined in one ranking (ADR 2)."""

import re

# Weights of the min-max normalised rankings; measured best of those tried, see docs/adr/0002.
LEXICAL_WEIGHT = 0.6
COSINE_WEIGHT = 0.4
# Words that more passages than this, and more than this share of them, have are left out of full-text search if there
# are rarer ones.
COMMON_PASSAGES = 200
COMMON_SHARE = 0.05
# Words longer than this cannot be words; they would only make the query string long.
_WORD = re.compile(r"\w{2,40}")
_MAX_WORDS = 32


def words_of(question: str) -> list[str]:
    """The distinct words of a question that full-text search looks for."""
    return list(dict.fromkeys(_WORD.findall(question)))[:_MAX_WORDS]


def telling(words: list[str], spread: dict[str, int], passages: int) -> list[str]:
    """The words without those that many passages have, unless all are such: they cost most and rank least.

    `spread` says how many passages have a word.
    """
    common = max(COMMON_SHARE * passages, COMMON_PASSAGES, min(spread.values(), default=0))
    return [word for word in words if spread.get(word, 0) <= common]


def fused(cosine: dict[int, float], lexical: dict[int, float]) -> list[int]:
    """Keys of both rankings, best weighted sum of their normalised scores first, then the smallest key."""
    by_cosine, by_words = _normalised(cosine), _normalised(lexical)
    score = {
        key: COSINE_WEIGHT * by_cosine.get(key, 0.0) + LEXICAL_WEIGHT * by_words.get(key, 0.0)
        for key in {**cosine, **lexical}
    }
    # Databases add up the words of a passage in any order, which changes the last digits.
    return sorted(score, key=lambda key: (-round(score[key], 9), key))


def _normalised(scores: dict[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    return {key: (value - low) / (high - low) if high > low else 1.0 for key, value in scores.items()}
