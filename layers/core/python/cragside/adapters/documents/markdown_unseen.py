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
# A sign that stands for itself, the beginning of a link, the address of a script, other brackets, the end of a line.
_SIGN = re.compile(
    r"\\.|!?\[|\]\(\s{0,9}<?\s{0,9}(?:javascript|vbscript|data):|[\]()]|\n(?:[ \t]{0,99}\n)?", re.IGNORECASE
)


def seen(text: str) -> str:
    """The text as readers see it. Code is left alone, and so is a comment or an element without an end."""
    # Links come second: what is hidden in their texts may have brackets of its own.
    for cuts in (_unseen, _scripts):
        kept, at = list[str](), 0
        for start, end in sorted(cuts(without_code(text))):
            kept.append(text[at:start])
            at = max(at, end)
        text = "".join((*kept, text[at:]))
    return text


def _scripts(masked: str) -> Iterator[tuple[int, int]]:
    """The places of what links that run scripts have before and behind their texts."""
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
    """The places of comments and hidden elements."""
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
