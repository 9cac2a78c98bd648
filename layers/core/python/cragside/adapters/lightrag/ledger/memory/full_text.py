"""Full-text search in memory, by the same BM25 as SQLite's."""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable

_K1, _B = 1.2, 0.75
_TERM = re.compile(r"[^\W_]+")


class FullText:
    """Texts by numbers."""

    def __init__(self) -> None:
        self._postings: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._terms: dict[int, Counter[str]] = {}

    def add(self, number: int, text: str) -> None:
        """Add a text under a new number."""
        self._terms[number] = Counter(_terms(text))
        for term, times in self._terms[number].items():
            self._postings[term][number] = times

    def remove(self, number: int) -> None:
        """Forget a text."""
        for term in self._terms.pop(number):
            del self._postings[term][number]

    def held(self, terms: Iterable[str]) -> dict[str, int]:
        """How many texts have each of these words. The rest are left out."""
        return {term: count for term in terms if (count := len(self._postings.get(term, ())))}

    def search(self, words: Iterable[str], limit: int) -> dict[int, float]:
        """At most `limit` numbers of texts that have any of the words, with their scores, best first."""
        scores: defaultdict[int, float] = defaultdict(float)
        mean = sum(terms.total() for terms in self._terms.values()) / max(len(self._terms), 1)
        for term in (term for word in words for term in _terms(word)):
            found = self._postings.get(term, {})
            idf = max(math.log((len(self._terms) - len(found) + 0.5) / (len(found) + 0.5)), 1e-6)
            for number, times in found.items():
                length = self._terms[number].total() / mean
                scores[number] += idf * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length))
        best = sorted(scores, key=lambda number: (-scores[number], number))[:limit]
        return {number: scores[number] for number in best}


def _terms(text: str) -> list[str]:
    """Words without case and accents."""
    plain = unicodedata.normalize("NFKD", text.lower())
    return _TERM.findall("".join(letter for letter in plain if not unicodedata.combining(letter)))
