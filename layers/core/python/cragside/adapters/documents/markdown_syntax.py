"""Finds headings, code, links and hidden text in Markdown."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import PurePath

from cragside.adapters.documents.inline_text import LEVEL, LOWERED, RAISED, leveled
from cragside.adapters.documents.kinds import MARKDOWN
from cragside.adapters.documents.reading import MAX_LISTED, MAX_MARKS, Headings, label, name_as_title
from cragside.domain.document import Mark

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(?:(=++)|-++)[ \t]*+$")
_NO_PARAGRAPH = re.compile(r"\s|[-*+>|#]|\d++[.)]\s|$")


def sections(text: str) -> tuple[Mark, ...]:
    """Return a mark at each heading, with its path: "A > B"."""
    headings, marks = Headings(), list[Mark]()
    for start, level, heading in _headings(text):
        marks.append(Mark(start, section=headings.enter(level, heading)))
        if len(marks) == MAX_MARKS:
            break
    return tuple(marks)


def title_of(name: str, text: str) -> str:
    """Return the first heading of a Markdown text, or else a readable form of the file's name."""
    heading = next(_headings(text), None) if PurePath(name).suffix.lower() in MARKDOWN.endings else None
    return label(heading[2]) if heading else name_as_title(name)


class Fences:
    """Follows the code fences of a Markdown text, line by line."""

    def __init__(self) -> None:
        self._open = ""

    def holds(self, line: str) -> bool:
        """Tell if the next line belongs to a fenced block. The lines that open and close it do."""
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


_SHIFTED = re.compile(r"<(su[pb])>([^<>\n]{1,200})</\1>", re.IGNORECASE)
_BACKTICKS = re.compile(r"`++")
_MASK = "\u2591"
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return the text with each piece of a line changed that is no code."""
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
    """Yield each line, and whether it is code: in a fence, or indented where no list and no paragraph goes on."""
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
    """Yield the places of code between backticks: as many close it as open it."""
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


# The beginning of a comment of HTML, a sign of a comment of Obsidian, or a tag.
_MARK = re.compile(r"<!--|%%|<(/?)([a-zA-Z][a-zA-Z0-9-]{0,30})((?:\s[^<>]{0,2000})?)>")
_ATTRIBUTE = re.compile(
    r"""\s([a-zA-Z-]{1,30})(?:\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000})))?"""
)
_MAY_HIDE = re.compile(r"\s(?:hidden|popover|inert|style)\b", re.IGNORECASE)
# A sign that stands for itself, the beginning of a link, the address of a script, other brackets, the end of a line.
_SIGN = re.compile(
    r"\\.|!?\[|\]\(\s{0,9}<?\s{0,9}(?:javascript|vbscript|data):|[\]()]|\n(?:[ \t]{0,99}\n)?", re.IGNORECASE
)


def seen(text: str) -> str:
    """Return the text as readers see it. Code is left alone, and so is a comment or an element without an end."""
    # Links come second: what is hidden in their texts may have brackets of its own.
    for cuts in (_unseen, _scripts):
        kept, at = list[str](), 0
        for start, end in sorted(cuts(without_code(text))):
            kept.append(text[at:start])
            at = max(at, end)
        text = "".join((*kept, text[at:]))
    return text


def _scripts(masked: str) -> Iterator[tuple[int, int]]:
    """Yield the places of what links that run scripts have before and behind their texts."""
    texts = list[re.Match[str]]()
    addresses = list[tuple[re.Match[str], re.Match[str]] | None]()
    for sign in _SIGN.finditer(masked):
        kind = sign[0][0]
        if kind in "![":
            texts.append(sign)
        elif kind == "]":
            begin = texts.pop() if texts else None
            if sign[0] != "]":
                addresses.append((begin, sign) if begin else None)
        elif kind == "(":
            addresses.append(None)
        elif kind == ")" and addresses:
            if link := addresses.pop():
                begin, behind = link
                yield begin.span()
                yield behind.start(), sign.end()
        elif kind == "\n":
            addresses.clear()
            if sign[0] != "\n":
                texts.clear()


def _unseen(masked: str) -> Iterator[tuple[int, int]]:
    """Yield the places of comments and hidden elements."""
    opened: dict[str, list[re.Match[str]]] = defaultdict(list)
    comment = None
    behind, last = 0, masked.rfind("-->")
    for mark in _MARK.finditer(masked):
        start, name = mark.start(), (mark[2] or "").lower()
        if start < behind:
            continue
        if mark[0] == "<!--":
            if start < last:
                behind = masked.find("-->", start) + 3
                yield start, behind
        elif mark[0] == "%%":
            if comment is not None:
                yield comment, mark.end()
                comment = None
            elif not masked[max(start - 1, 0) : start].isalnum():
                comment = start
        elif not mark[1]:
            opened[name].append(mark)
        elif opened[name]:
            begin = opened[name].pop()
            if _is_hidden(name, begin[3]):
                yield begin.start(), mark.end()


def _is_hidden(name: str, attributes: str) -> bool:
    if not _MAY_HIDE.search(attributes) and name not in ("template", "script", "style", "noscript", "dialog"):
        return False
    from lxml import etree

    from cragside.adapters.documents.hidden_text import hides_itself

    element = etree.Element(name)
    for found in _ATTRIBUTE.finditer(attributes):
        element.set(found[1].lower(), next(filter(None, found.groups()[1:]), ""))
    return name in ("script", "style") or hides_itself(element)


_LINK = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]")
_SIZE = re.compile(r"\d{1,5}(?:x\d{1,5})?")


def resolved(text: str) -> tuple[str, list[str]]:
    """Return the text with what a reader sees of each link, and the pages that it links to. Code is left alone."""
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

    return outside_code(text, lambda piece: _LINK.sub(shown, piece)), list(pages)
