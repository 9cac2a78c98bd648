"""Abbreviations that a text explains: `personal flotation device (PFD)`, `PFD (personal ...)`, `PFD = personal ...`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cragside.adapters.embedded.stopwords import FRENCH, STOPWORDS

_EMPTY = STOPWORDS | FRENCH
# At least one capital after the first letter, so that no common word is one.
_SHORT = r"(?<![\w-])([A-ZÄÖÜ][A-Za-zÄÖÜäöü]{0,6}[A-ZÄÖÜ]|[A-ZÄÖÜ][A-ZÄÖÜ][a-z]{1,6})"
_IN_BRACKETS = re.compile(r"\(\s?" + _SHORT + r"\s?[),;]")
_FIRST = re.compile(
    _SHORT
    + r"(?![\w-])\s?(?:\(|=|:|–|—|\||- |;\s?[^\s:;]{1,40}:"  # the last for a row: `Abbreviation: RT; Meaning: ...`
    r"|,? (?:short|kurz) for |(?:stands|is short) for |(?:steht|ist kurz|kurz) für )"
)
_AFTER = re.compile(r"[,(] ?(?:in |for )?(?:short|abbreviated|kurz|abgekürzt)(?: as)?:? " + _SHORT + r"(?![\w-])")
_WORD = re.compile(r"[^\W_]{1,40}(?:['’-][^\W_]{1,40}){0,4}")
_END = re.compile(r"[()\[\],;:=|\n]|\.\s")
_LONGEST_FORM, _MOST_WORDS = 120, 9
# A long form of one word is a compound.
_SHORTEST_COMPOUND = 8
_MOST = 20


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """A short form and what a text says that it stands for."""

    short: str
    long: str


@lru_cache(maxsize=1 << 9)
def abbreviations_in(text: str) -> tuple[Abbreviation, ...]:
    """The abbreviations that a text explains, at most 20."""
    found: dict[Abbreviation, None] = {}
    for each in _explained(text):
        found[each] = None
        if len(found) == _MOST:
            break
    return tuple(found)


def _explained(text: str) -> Iterator[Abbreviation]:
    for pattern in (_IN_BRACKETS, _AFTER):
        for match in pattern.finditer(text):
            before = _END.split(text[max(0, match.start() - _LONGEST_FORM) : match.start()].rstrip(" ."))[-1]
            yield from _fitting(match.group(1), before, at_end=True)
    for match in _FIRST.finditer(text):
        after = _END.split(text[match.end() : match.end() + _LONGEST_FORM].lstrip(), maxsplit=1)[0]
        yield from _fitting(match.group(1), after, at_end=False)


def _fitting(short: str, text: str, *, at_end: bool) -> Iterator[Abbreviation]:
    """The fewest words at one end of a text that a short form may stand for."""
    words = list(_WORD.finditer(text))
    while at_end and words and len(words[-1].group()) == 1:  # Segelclub Asverbucht e.V.
        words.pop()
    words = words[-_MOST_WORDS:] if at_end else words[:_MOST_WORDS]
    runs = [words[-size:] if at_end else words[:size] for size in range(1, len(words) + 1)]
    for fits in (_is_initials, _stands_for):
        for run in runs:
            if fits(short.lower(), [word.group().lower() for word in run]):
                yield Abbreviation(short, " ".join(text[run[0].start() : run[-1].end()].split()))
                return


def _is_initials(short: str, words: Sequence[str]) -> bool:
    """Tell if the words begin with the letters of a short form. Those without a topic need not."""
    return len(words) > 1 and short in (_initials(words), _initials(_telling(words)))


def _stands_for(short: str, words: Sequence[str]) -> bool:
    """Tell if the letters of a short form occur in these words in order, and each word with a topic begins with one."""
    if (len(words) == 1 and len(words[0]) < _SHORTEST_COMPOUND) or len(short) > sum(map(len, words)) // 2:
        return False
    initials = _initials(_telling(words))
    in_order = _in_order(short, " ".join(words)) and _in_order(initials, short)
    return words[0][0] == short[0] and in_order and len(initials) <= len(short)


def _initials(words: Sequence[str]) -> str:
    return "".join(part[0] for word in words for part in word.split("-"))


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if len(word) > 1 and word not in _EMPTY]


def _in_order(letters: str, text: str) -> bool:
    place = -1
    for letter in letters:
        place = text.find(letter, place + 1)
        if place < 0:
            return False
    return True
