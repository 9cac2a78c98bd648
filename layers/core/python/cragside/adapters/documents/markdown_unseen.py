"""Removes from Markdown what its readers do not see: comments, hidden elements, and links that run scripts."""

import re
from collections import defaultdict
from collections.abc import Iterator

from cragside.adapters.documents.markdown_code import without_code

# The beginning of a comment of HTML, a sign of a comment of Obsidian, or a tag.
_MARK = re.compile(r"<!--|%%|<(/?)([a-zA-Z][a-zA-Z0-9-]{0,30})((?:\s[^<>]{0,2000})?)>")
_ATTRIBUTE = re.compile(
    r"""\s([a-zA-Z-]{1,30})(?:\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000})))?"""
)
_MAY_HIDE = re.compile(r"\s(?:hidden|popover|inert|style)\b", re.IGNORECASE)
_SCRIPT = re.compile(r"!?\[([^\[\]\n]{0,500})\]\(\s{0,9}<?\s{0,9}(?:javascript|vbscript|data):", re.IGNORECASE)
_BRACKET = re.compile(r"[()\n]")
_LONGEST_ADDRESS = 100_000


def seen(text: str) -> str:
    """The text as readers see it. Code is left alone, and so is a comment or an element without an end."""
    masked = without_code(text)
    kept, at = list[str](), 0
    for start, end, shown in sorted((*_unseen(masked), *_scripts(masked))):
        if start >= at:
            kept += (text[at:start], text[slice(*shown)])
            at = end
    return "".join((*kept, text[at:]))


def _scripts(masked: str) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Where links that run scripts begin and end, and where their texts do."""
    behind = 0
    for link in _SCRIPT.finditer(masked):
        depth = 1
        for bracket in _BRACKET.finditer(masked, max(link.end(), behind), link.end() + _LONGEST_ADDRESS):
            depth += {"(": 1, ")": -1}.get(bracket[0], -depth)
            behind = bracket.end()
            if not depth:
                break
        if not depth and masked[behind - 1] == ")":
            yield link.start(), behind, link.span(1)


def _unseen(masked: str) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Where comments and hidden elements begin and end, and nothing of them that is shown."""
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
                yield start, behind, (0, 0)
        elif mark[0] == "%%":
            if comment is not None:
                yield comment, mark.end(), (0, 0)
                comment = None
            elif not masked[max(start - 1, 0) : start].isalnum():
                comment = start
        elif not mark[1]:
            opened[name].append(mark)
        elif opened[name]:
            begin = opened[name].pop()
            if _is_hidden(name, begin[3]):
                yield begin.start(), mark.end(), (0, 0)


def _is_hidden(name: str, attributes: str) -> bool:
    if not _MAY_HIDE.search(attributes) and name not in ("template", "script", "style", "noscript", "dialog"):
        return False
    from lxml import etree

    from cragside.adapters.documents.unseen import hides_itself

    element = etree.Element(name)
    for found in _ATTRIBUTE.finditer(attributes):
        element.set(found[1].lower(), next(filter(None, found.groups()[1:]), ""))
    return name in ("script", "style") or hides_itself(element)
