"""The words of English, German and French, as a filter of a few hundred kilobytes for each."""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Self

from cragside.adapters.embedded.words import Language

# One word in a hundred that is none passes.
_BITS, _HASHES = 10, 7


class WordFilter:
    """Words that may be asked for, but not listed (a Bloom filter)."""

    def __init__(self, bits: bytes) -> None:
        self._bits = bits

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """A filter that has these words."""
        distinct = set(words)
        bits = bytearray(len(distinct) * _BITS // 8 + 1)
        for word in distinct:
            for place in _places(word, len(bits)):
                bits[place >> 3] |= 1 << (place & 7)
        return cls(bytes(bits))

    @property
    def bits(self) -> bytes:
        """The content of its file."""
        return self._bits

    def __contains__(self, word: str) -> bool:
        return all(self._bits[place >> 3] & 1 << (place & 7) for place in _places(word, len(self._bits)))


def _places(word: str, size: int) -> list[int]:
    digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
    return [(first + number * second) % (8 * size) for number in range(_HASHES)]


@cache
def words_of(language: Language) -> WordFilter:
    """The words of a language, as `words` finds them (`evals/known_words.py` writes the files)."""
    return WordFilter(resources.files(__package__).joinpath(f"known_words.{language}").read_bytes())
