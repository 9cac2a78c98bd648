"""The words of English, German and French, as a filter of a few hundred kilobytes for each."""

import hashlib
from functools import cache
from importlib import resources

from cragside.adapters.embedded.words import Language

# One word in a hundred that is none passes.
BITS, _HASHES = 10, 7


class WordFilter:
    """Words that may be asked for, but not listed (a Bloom filter)."""

    def __init__(self, bits: bytes) -> None:
        self._bits = bits

    def __contains__(self, word: str) -> bool:
        return all(self._bits[place >> 3] & 1 << (place & 7) for place in places_of(word, len(self._bits)))


def places_of(word: str, size: int) -> list[int]:
    """The numbers of a word's bits in a filter of `size` bytes."""
    digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
    return [(first + number * second) % (8 * size) for number in range(_HASHES)]


@cache
def words_of(language: Language) -> WordFilter:
    """The words of a language, as `words` finds them (`evals/known_words.py` writes the files)."""
    return WordFilter(resources.files(__package__).joinpath(f"known_words.{language}").read_bytes())
