"""The words that a misspelt word may stand for, likeliest first."""

from collections.abc import Iterator
from string import ascii_lowercase

# A shorter word is near to too many others: from these lengths on, letters may be swapped, doubled or missing; wrong;
# too many.
_SHORTEST_SLIP, _SHORTEST_WRONG, _SHORTEST_MORE = 5, 6, 7
_UMLAUTS = (("ae", "ä"), ("oe", "ö"), ("ue", "ü"))
_PLAIN = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})
# The rank of a slip that makes another word about as often.
WRONG = 4


def meant(word: str, *, shortest: int = _SHORTEST_SLIP) -> dict[str, int]:
    """The words that differ from a word by one slip of the keyboard, each with its rank: the lower, the likelier.

    Umlauts in their other spelling are no slip. The first letter is right unless it is swapped with the second: people
    seldom mistype it. `shortest` is the length from which a word is said to be misspelt.
    """
    found: dict[str, int] = {}
    for base in spellings(word):
        found.setdefault(base, 0)
        for rank, others in enumerate((_swapped(base), _doubled(base), _missing(base)), start=1):
            for other in others if len(base) >= shortest else ():
                found.setdefault(other, rank)
        for other in _wrong(base) if len(base) >= _SHORTEST_WRONG else ():
            found.setdefault(other, WRONG)
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
    return word.translate(_PLAIN)


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
        if len(word) >= _SHORTEST_MORE:
            yield word[:place] + word[place + 1 :]
        for letter in ascii_lowercase:
            yield word[:place] + letter + word[place + 1 :]
