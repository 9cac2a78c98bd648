"""Finds rare names of a question in a text, and the words that a misspelt word may stand for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase

from cragside.adapters.embedded.embedder import Lexicon
from cragside.adapters.embedded.words import ENGLISH, GERMAN, OTHER, UMLAUTS, word_lists

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
    """Return a word, and its other spellings if it has umlauts: ü as ue, or ue as ü."""
    one = two = word
    for letters, umlaut in _UMLAUTS:
        one, two = one.replace(letters, umlaut), two.replace(umlaut, letters)
    return tuple(dict.fromkeys((word, one, two)))


def unmarked(word: str) -> str:
    """Return a word with plain letters for its umlauts, in either spelling."""
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


_SHORTEST_NAME, _SHORTEST_ROOT = 3, 4
_SPELLINGS = (("our", "or"), ("tre", "ter"), ("yse", "yze"))
# English endings of inflected and derived words, and of countries beside their people: Canada, Canadian.
_ENDINGS = tuple(word_lists()["english endings"].split())
# Hardly any name ends like these.
_COMMON_ENDINGS = tuple(word_lists()["endings of common words"].split())
_PREFIXES = ("un", "non", "pre", "re", "dis", "in", "im", "mis", "anti")
_LONGEST_ACRONYM = 5


def names_in(content: Iterable[str], lexicon: Lexicon, *, rare: bool) -> list[str]:
    """Return the words that the model's vocabulary spells in pieces, with and without an English ending.

    The vocabulary has the common English words in lower case, so the rest are mostly names. The vector of such a word
    comes from its letters: nearness to another word means similar spelling and no more. `rare` leaves out the names
    that the vocabulary has with capitals: London, Bible, USA.
    """
    return [word for word in content if _is_name(word.replace("’", "'").removesuffix("'s"), lexicon, rare=rare)]


def _is_name(word: str, lexicon: Lexicon, *, rare: bool) -> bool:
    if len(word) < _SHORTEST_NAME or not (word.isascii() and word.isalpha()) or word.endswith(_COMMON_ENDINGS):
        return False
    spellings = (*_bases(word), word.capitalize(), word.upper()) if rare else _bases(word)
    return all(lexicon.pieces(spelling) > 1 for spelling in spellings)


def is_english(found: Sequence[str]) -> bool:
    """Tell if the function words of a text, given as its words, are not those of another language."""
    english = sum(map(ENGLISH.__contains__, found))
    return english >= max(sum(map(GERMAN.__contains__, found)), sum(map(OTHER.__contains__, found)))


def mentions(word: str, asked: Sequence[str], found: Sequence[str]) -> bool:
    """Tell if a text has a name of a question: inflected, derived, in one word or two, or as initials.

    `asked` and `found` are the words of the question and of the text.
    """
    plain = [_plain(other) for other in found]
    distinct = set(plain)
    if any(
        first + second in distinct for first, second in pairwise(map(_plain, asked)) if _plain(word) in (first, second)
    ):
        return True
    word = _plain(word)
    mine = _roots(word)
    if any(other[:2] == word[:2] and _related(mine, _roots(other)) for other in distinct):
        return True
    if any(first + second == word for first, second in pairwise(plain)):
        return True
    if len(word) > _LONGEST_ACRONYM:
        return False
    return word in "".join(other[0] for other in plain if len(other) == 1 or other not in ENGLISH)


def resembles(word: str, found: Iterable[str]) -> bool:
    """Tell if a text, given as its words, has a word that differs from this one in a single letter."""
    alike = (other for other in set(found) if len(other) == len(word) > _SHORTEST_NAME)
    return any(sum(mine != other for mine, other in zip(word, like, strict=True)) == 1 for like in alike)


def misspells(word: str, found: Iterable[str], lexicon: Lexicon) -> bool:
    """Tell if a word is a common word of a text with one slip of the keyboard, and so no name."""
    return any(lexicon.pieces(other) == 1 for other in meant(word).keys() & set(found))


def _related(mine: dict[str, str], other: dict[str, str]) -> bool:
    """Tell if two words share a root. Endings of one letter each are not enough: Marta and Marty are two people."""
    return any(len(mine[root]) != 1 or len(other[root]) != 1 for root in mine.keys() & other.keys())


def _roots(word: str, shortest: int = _SHORTEST_ROOT) -> dict[str, str]:
    """Return a word, and what each ending leaves of it, with that ending."""
    roots = {word: ""}
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            roots[word[: -len(ending)]] = ending
    return roots


def _bases(word: str) -> Iterator[str]:
    """Yield the word, and those that it may be formed from: `running` from `runn`, `runne`, `runny` and `run`."""
    for start in ("", *(prefix for prefix in _PREFIXES if word.startswith(prefix))):
        for root, ending in _roots(word.removeprefix(start), shortest=3).items():
            yield root
            if ending:
                yield from (root + "e", root + "y")
            if ending and root[-1] == root[-2]:
                yield root[:-1]


def _plain(word: str) -> str:
    """Return a word without possessive, in American spelling, its umlauts in either spelling as plain letters."""
    word = unmarked(word.replace("’", "'").removesuffix("'s").replace("'", ""))
    for spelling, plain in _SPELLINGS:
        word = word.replace(spelling, plain)
    return word
