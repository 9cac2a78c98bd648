"""The words that a misspelt word may stand for, likeliest first."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import ascii_lowercase

from cragside.adapters.embedded.words import UMLAUTS

# A shorter word is near to too many others.
_SHORTEST = 5
# A longer one is mostly no word, and has too many.
_LONGEST = 40
_UMLAUTS = (("ae", "ä"), ("oe", "ö"), ("ue", "ü"))
# The rank of the least likely slips: these turn a word into another word as often as they misspell it.
WRONG = 4


@lru_cache(maxsize=16)  # each passage that is graded asks for the same few words
def meant(word: str, *, shortest: int = _SHORTEST) -> Mapping[str, int]:
    """The words that differ from a word by one slip of the keyboard, each with its rank: the lower, the likelier.

    Umlauts in their other spelling are no slip. The first letter is right unless it is swapped with the second: people
    seldom mistype it. In words of `shortest` letters some may be swapped, doubled or missing, in those of one more one
    may be wrong, and in those of two more one too many.
    """
    found: dict[str, int] = {}
    for base in spellings(word):
        found.setdefault(base, 0)
        slips = (
            (1, shortest, _swapped(base)),
            (2, shortest, _doubled(base)),
            (3, shortest, _missing(base)),
            (WRONG, shortest + 1, _wrong(base)),
            (WRONG, shortest + 2, _more(base)),
        )
        for rank, least, others in slips:
            for other in others if least <= len(base) <= _LONGEST else ():
                found.setdefault(other, rank)
    del found[word]
    return found


def spellings(word: str) -> tuple[str, ...]:
    """A word, and what it is with its umlauts in one letter instead of two or in two instead of one."""
    one = two = word
    for letters, umlaut in _UMLAUTS:
        one, two = one.replace(letters, umlaut), two.replace(umlaut, letters)
    return tuple(dict.fromkeys((word, one, two)))


def unmarked(word: str) -> str:
    """A word with plain letters for its umlauts, in either spelling."""
    for letters, umlaut in _UMLAUTS:
        word = word.replace(letters, umlaut)
    return word.translate(UMLAUTS)


def _swapped(word: str) -> Iterator[str]:
    for place in range(len(word) - 1):
        yield word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _doubled(word: str) -> Iterator[str]:
    for place, letter in enumerate(word):
        yield word[:place] + letter + word[place:]
        if place and word[place - 1] == letter:
            yield word[:place] + word[place + 1 :]


def _missing(word: str) -> Iterator[str]:
    for place in range(1, len(word) + 1):
        for letter in ascii_lowercase:
            yield word[:place] + letter + word[place:]


def _wrong(word: str) -> Iterator[str]:
    for place in range(1, len(word) - 1):
        for letter in ascii_lowercase:
            yield word[:place] + letter + word[place + 1 :]


def _more(word: str) -> Iterator[str]:
    for place in range(1, len(word) - 1):
        yield word[:place] + word[place + 1 :]
