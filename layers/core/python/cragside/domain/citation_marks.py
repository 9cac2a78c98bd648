"""The marks of citations, [1] and [1, 2], in a text that is whole or comes in pieces."""

import re
from collections.abc import Iterator
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
    """The marks in a text, or in a part of it, in their order. Each is looked for when it is asked for."""
    for mark in MARK.finditer(text, start, len(text) if end is None else end):
        numbers = list(_NUMBER.finditer(text, *mark.span()))
        for number in numbers:
            yield Mark(int(number[0]), *(mark.span() if len(numbers) == 1 else number.span()))


class MarksOfPieces:
    """Reads a text that comes in pieces, of any size. It keeps the marks alone: the first thousand, in `found`."""

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
