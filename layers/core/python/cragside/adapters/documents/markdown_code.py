"""Finds the code in Markdown."""

import re
from collections.abc import Callable, Iterator

from cragside.adapters.documents.headings import Fences
from cragside.adapters.documents.raised import LEVEL, LOWERED, RAISED, leveled

_SHIFTED = re.compile(r"<(su[pb])>([^<>\n]{1,200})</\1>", re.IGNORECASE)
_BACKTICKS = re.compile(r"`++")
_MASK = "\u2591"
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with each piece of a line changed that is no code."""
    return "\n".join(line if code else _changed(line, change) for line, code in _lines(text))


def without_tags(text: str) -> str:
    """Markdown with its `sup` and `sub` elements as plain text. Code is left alone."""
    return (
        outside_code(text, lambda piece: leveled(_SHIFTED.sub(_with_marks, piece))) if "</su" in text.lower() else text
    )


def _with_marks(element: re.Match[str]) -> str:
    return f"{RAISED if element[1].lower() == 'sup' else LOWERED}{element[2]}{LEVEL}"


def without_code(text: str) -> str:
    """The text with another sign for each character of code and for those that XML lacks: places stay the same."""
    changed = list[str]()
    for line, code in _lines(text):
        spans = [(0, len(line))] if code else _spans(line)
        at = 0
        for start, end in spans:
            changed += (line[at:start], _MASK * (end - start))
            at = end
        changed += (line[at:], "\n")
    return _NOT_XML.sub(_MASK, "".join(changed[:-1]))


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


def _changed(line: str, change: Callable[[str], str]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in _spans(line):
        pieces += (change(line[at:start]), line[start:end])
        at = end
    return "".join((*pieces, change(line[at:])))


def _spans(line: str) -> Iterator[tuple[int, int]]:
    """The places of code between backticks: as many close it as open it."""
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
