"""Finds the headings of Markdown outside of code fences. Each begins a section; the first one is the title."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from cragside.adapters.documents.kinds import MARKDOWN
from cragside.adapters.documents.reading import MAX_MARKS, Headings, label, name_as_title
from cragside.domain.document import Mark

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:(=++)|-++)[ \t]*+$")
_NO_PARAGRAPH = re.compile(r"\s|[-*+>|#]|\d++[.)]\s|$")


def sections(text: str) -> tuple[Mark, ...]:
    """A mark at each heading, with its path: "A > B"."""
    headings, marks = Headings(), list[Mark]()
    for start, level, heading in _headings(text):
        marks.append(Mark(start, section=headings.enter(level, heading)))
        if len(marks) == MAX_MARKS:
            break
    return tuple(marks)


def title_of(name: str, text: str) -> str:
    """The first heading of a Markdown text, or else a readable form of the file's name."""
    heading = next(_headings(text), None) if PurePath(name).suffix.lower() in MARKDOWN.endings else None
    return label(heading[2]) if heading else name_as_title(name)


class Fences:
    """Follows the code fences of a Markdown text, line by line."""

    def __init__(self) -> None:
        self._open = ""

    def holds(self, line: str) -> bool:
        """Whether the next line belongs to a fenced block. The lines that open and close it do."""
        mark = _FENCE.match(line)
        if self._open:
            if mark and mark[1].startswith(self._open) and not mark[2].strip():
                self._open = ""
            return True
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            self._open = mark[1]
            return True
        return False


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, level and text of each heading, with `#` or underlined."""
    front = _FRONT_MATTER.match(text)
    start = front.end() if front else 0
    fences, paragraph, began, single = Fences(), "", start, False
    for line in text[start:].split("\n"):
        fenced = fences.holds(line)
        heading = None if fenced else _HEADING.match(line)
        underline = None if fenced or not single else _UNDERLINE.match(line)
        if underline and paragraph:
            yield began, 1 if underline[1] else 2, paragraph.strip()
        elif heading and (words := heading[2].rstrip().rstrip("#").rstrip()):
            yield start, len(heading[1]), words
        plain = not (fenced or heading or _NO_PARAGRAPH.match(line))
        single, paragraph, began = plain and not paragraph, line if plain else "", start
        start += len(line) + 1
