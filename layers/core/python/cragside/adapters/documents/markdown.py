"""Markdown: headings are sections, the first one is the title; what stands in code fences is no heading."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.reading import MAX_MARKS, Headings, Origin, Reading, label, name_as_title
from cragside.adapters.documents.texts import decoded
from cragside.domain.document import Mark

ENDINGS = (".md", ".markdown", ".mdx")

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:(=++)|-++)[ \t]*+$")
_NO_PARAGRAPH = re.compile(r"\s|[-*+>|#]|\d++[.)]\s|$")


def read(content: bytes, origin: Origin) -> Reading:
    """A Markdown file's text as it is written."""
    text = decoded(content, origin)
    doc_type, tier1 = describe(origin.name, text)
    return Reading(text, doc_type, title_of(origin.name, text), sections(text), tier1)


def sections(text: str) -> tuple[Mark, ...]:
    """A mark at each heading, with the path to it: "A > B"."""
    headings, marks = Headings(), list[Mark]()
    for start, level, heading in _headings(text):
        marks.append(Mark(start, section=headings.enter(level, heading)))
        if len(marks) == MAX_MARKS:
            break
    return tuple(marks)


def title_of(name: str, text: str) -> str:
    """A Markdown text's first heading, else the file's name made readable."""
    heading = next(_headings(text), None) if PurePath(name).suffix.lower() in ENDINGS else None
    return label(heading[2]) if heading else name_as_title(name)


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, level and words of each heading, written with `#` or underlined."""
    front = _FRONT_MATTER.match(text)
    start = front.end() if front else 0
    fence, paragraph, began, single = "", "", start, False
    for line in text[start:].split("\n"):
        mark = _FENCE.match(line)
        heading = None if fence else _HEADING.match(line)
        underline = None if fence or not single else _UNDERLINE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        elif underline and paragraph:
            yield began, 1 if underline[1] else 2, paragraph.strip()
        elif heading and (words := heading[2].rstrip().rstrip("#").rstrip()):
            yield start, len(heading[1]), words
        plain = not (fence or mark or heading or _NO_PARAGRAPH.match(line))
        single, paragraph, began = plain and not paragraph, line if plain else "", start
        start += len(line) + 1
