"""Resolves wiki links in Markdown: `[[Page]]`, `[[Page|shown]]`, `[[Page#Heading]]`, `![[embedded]]`."""

import re
from collections.abc import Callable, Iterator

from cragside.adapters.documents.headings import Fences
from cragside.adapters.documents.reading import MAX_LISTED, label

_LINK = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]")
_BACKTICKS = re.compile(r"`++")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_SIZE = re.compile(r"\d{1,5}(?:x\d{1,5})?")


def resolved(text: str) -> tuple[str, list[str]]:
    """The text with what a reader sees of each link, and the pages that it links to. Code is left alone."""
    if "[[" not in text:
        return text, []
    pages: dict[str, None] = {}

    def shown(link: re.Match[str]) -> str:
        page, _, heading = (part.strip() for part in link[1].rstrip("\\").partition("#"))
        name = (link[2] or "").strip()
        if not (page or heading):
            return link[0]
        if page and len(pages) < MAX_LISTED:
            pages[label(page)] = None
        if name and not (link[0][0] == "!" and _SIZE.fullmatch(name)):
            return name
        # `#^` leads to a paragraph, whose name nobody sees.
        return " > ".join(filter(None, (page, "" if heading.startswith("^") else heading.replace("#", " > "))))

    lines = [line if code or "[[" not in line else _outside_code(line, shown) for line, code in _lines(text)]
    return "\n".join(lines), list(pages)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is code: in a fence, or indented where no list and no paragraph goes on."""
    fences = Fences()
    in_list, blank, code = False, True, False
    for line in text.split("\n"):
        if fences.holds(line):
            yield line, True
            blank, code = False, False
            continue
        empty, indented = not line.strip(), line.startswith(("    ", "\t"))
        code = indented and not in_list and (blank or code)
        if not empty and not code:
            in_list = bool(_ITEM.match(line)) or (in_list and (indented or line.startswith(" ") or not blank))
        yield line, code
        blank = empty or (blank and code)


def _outside_code(line: str, shown: Callable[[re.Match[str]], str]) -> str:
    """Replace the links in a line but for those between backticks."""
    pieces: list[str] = []
    at = 0
    for start, end in _spans(line):
        pieces += (_LINK.sub(shown, line[at:start]), line[start:end])
        at = end
    return "".join((*pieces, _LINK.sub(shown, line[at:])))


def _spans(line: str) -> Iterator[tuple[int, int]]:
    """Where code between backticks begins and ends: as many close it as open it."""
    runs = list(_BACKTICKS.finditer(line))
    closing: dict[int, int] = {}
    ends = [0] * len(runs)
    for index in reversed(range(len(runs))):
        length = len(runs[index][0])
        ends[index] = closing.get(length, -1)
        closing[length] = index
    index = 0
    while index < len(runs):
        if (end := ends[index]) >= 0:
            yield runs[index].start(), runs[end].end()
            index = end
        index += 1
