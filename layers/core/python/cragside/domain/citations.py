"""Finds the citations in an answer, and the sentences that they stand in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

# A mark stands in one line.
MARK = re.compile(r"\[[^\S\n]?[0-9]{1,4}(?:[^\S\n]?[,;][^\S\n]?[0-9]{1,4}){0,50}[^\S\n]?\]")
_NUMBER = re.compile(r"[0-9]+")
_LONGEST = len("[ 1234") + 50 * len(" , 1234") + len(" ]")
# Text that is made of marks would take seconds.
MOST_MARKS = 1000


class Mark(NamedTuple):
    """A number that a text cites. `start` and `end` are those of `[1]`, in characters; in `[1, 2]`, of the number."""

    number: int
    start: int
    end: int


def marks_in(text: str, start: int = 0, end: int | None = None) -> Iterator[Mark]:
    """Yield the marks in a text, or in a part of it, in order. The text is searched only as far as they are read."""
    for mark in MARK.finditer(text, start, len(text) if end is None else end):
        numbers = list(_NUMBER.finditer(text, *mark.span()))
        for number in numbers:
            yield Mark(int(number[0]), *(mark.span() if len(numbers) == 1 else number.span()))


class MarksOfPieces:
    """Finds the marks of a text that comes in pieces of any size. `found` has the first thousand."""

    def __init__(self) -> None:
        self.found: list[Mark] = []
        self._begun = ""  # a mark that has not ended
        self._behind = 0  # characters before it

    def read(self, piece: str) -> None:
        """Read the next piece."""
        text = self._begun + piece
        marks = islice(marks_in(text), MOST_MARKS - len(self.found))
        self.found += [Mark(number, start + self._behind, end + self._behind) for number, start, end in marks]
        opened = max(text.rfind("[", -_LONGEST), text.rfind("]", -_LONGEST))
        self._begun = text[opened:] if text[opened : opened + 1] == "[" else ""
        self._behind += len(text) - len(self._begun)


_MARKS = re.compile(rf"{MARK.pattern}(?:\s{{0,3}}{MARK.pattern})*")
# A full stop with the quotes and citations behind it, when something else begins after a blank; or a line's end.
_CITED = rf"(?:\s{{0,3}}{MARK.pattern})*"
_END = re.compile(rf"[.!?][\"'”’“»)]{{0,3}}{_CITED}[.!?]?(?=\s|$)|[。！？]{_CITED}|\n+")
# After these a sentence goes on: "Dr. Weber", "J. Weber", "z. B. Berlin".
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Za-z]|dr|mr|mrs|ms|st|no|nr|prof|jr|sr|vs|ca|bzw|vgl|etc|fig|e\.g|i\.e|z\.b|u\.s|a\.k\.a)\.$",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 8
_FEWEST_WORDS = 3
# Of a longer claim, this much is compared: the end of a part, the beginning of a sentence.
_LONGEST_CLAIM = 1000


@dataclass(frozen=True, slots=True)
class Cited:
    """A number that an answer cites, with its place as in `Mark`. `claim` is what the citation is to support."""

    number: int
    start: int
    end: int
    claim: str


def citations_in(answer: str) -> Iterator[Cited]:
    """Yield all citations in their order. Each sentence is read when its citations are asked for.

    The claim of a citation is its sentence. If the sentence has citations in several places, each has the part of the
    sentence that ends with it, unless that has fewer than three words.
    """
    for start, end in _sentences(answer):
        yield from _cited(answer, start, end)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, without citations."""
    return [claim for start, end in _sentences(text) if (claim := _claim(text[start:end]))]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Give the offsets of each sentence, with the citations behind its full stop."""
    begun = 0
    for match in _END.finditer(text):
        stop = match.start() + 1
        if text[match.start()] == "." and _goes_on(text, begun, stop, match.end()):
            continue
        yield begun, match.end()
        begun = match.end()
    if begun < len(text):
        yield begun, len(text)


def _goes_on(text: str, begun: int, stop: int, end: int) -> bool:
    """Tell if the full stop before `stop` belongs to an abbreviation."""
    following = text[end : end + 3].lstrip()[:1]
    if end != stop or not following:
        return False
    before = text[max(begun, stop - _LONGEST_ABBREVIATION) : stop]
    return following.islower() or _ABBREVIATION.search(before) is not None


def _cited(answer: str, start: int, end: int) -> Iterator[Cited]:
    places = [match.span() for match in _MARKS.finditer(answer, start, end)]
    if not places:
        return
    whole = _claim(answer[start:end])[:_LONGEST_CLAIM]
    starts = [start, *(place[1] for place in places[:-1])]
    ends = [*(place[0] for place in places[:-1]), end]
    for (first, last), since, until in zip(places, starts, ends, strict=True):
        part = _claim(answer[since:until])
        claim = part[-_LONGEST_CLAIM:] if len(part.split()) >= _FEWEST_WORDS else whole
        for mark in marks_in(answer, first, last):
            yield Cited(*mark, claim)


def _claim(text: str) -> str:
    """Return a part of an answer without citations and list marks."""
    claim = " ".join(MARK.sub(" ", text).split())
    return re.sub(r"(?<!\s)\s+(?=[.,;:!?])", "", claim).lstrip("-*•# ").lstrip(",;:. ").strip()
