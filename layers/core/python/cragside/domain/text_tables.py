"""Finds the header that a passage from the middle of a table lacks. Cells of such a table stand between bars."""

import re
from bisect import bisect_left, bisect_right

from cragside.domain.table_header import LOOKED_AT, header_of

# A longer header would leave too little of a passage to its rows.
MOST_CARRIED = 1000
# Lines with bars, and those between the rows of a grid: +---+---+.
_LINES = re.compile(r"^(?:(?:[^\n|]*+\||\+[-=+]{3})[^\n]*+(?:\n|\Z)){3,}+", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
# The line that Markdown and Org write below a header.
_RULE = re.compile(r"[ \t]{0,10}\|?(?:[ \t]{0,200}:?-{1,200}:?[ \t]{0,200}(?:[|+]|$)){1,200}")


class TextTables:
    """The tables of a text: three lines with bars or more, outside of code fences."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._spans = [found.span() for found in _LINES.finditer(text)] if "|" in text else []
        self._starts = [start for start, _ in self._spans]
        self._fences = [found.start() for found in _FENCE.finditer(text)] if self._spans else []
        self._headers = dict[int, tuple[int, int]]()

    def header_for(self, position: int) -> str:
        """The lines of the header above a position in the rows of a table, with their ends. "" if there are none."""
        index = bisect_left(self._starts, position) - 1
        if index < 0 or position >= self._spans[index][1]:
            return ""
        if index not in self._headers:
            self._headers[index] = self._header(*self._spans[index])
        start, end = self._headers[index]
        return self._text[start : min(end, position)]

    def _header(self, start: int, end: int) -> tuple[int, int]:
        """Where the header of a table begins and ends."""
        if bisect_right(self._fences, start) % 2:
            return start, start
        lines = self._text[start : min(end, start + LOOKED_AT * MOST_CARRIED)].splitlines(keepends=True)[:LOOKED_AT]
        if _RULE.fullmatch(lines[1].rstrip()):
            first, last = 0, 2
        else:
            header = header_of([(number, _cells(line)) for number, line in enumerate(lines)])
            first, last = header.at, header.at + header.rows
        start += sum(map(len, lines[:first]))
        length = sum(map(len, lines[first:last]))
        says_something = any(map(str.isalnum, "".join(lines[first:last])))
        return start, start + length if says_something and length <= MOST_CARRIED else start


def _cells(line: str) -> list[str]:
    line = line.strip()
    # Markdown writes bars around a row. A single one at the beginning is behind an empty cell.
    inner = line[1:-1] if line.startswith("|") and line.endswith("|") else line
    return [" ".join(cell.split()) for cell in inner.split("|")]
