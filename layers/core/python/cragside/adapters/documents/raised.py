"""Keeps a raised figure apart from the number that it stands at: 10 to the power of 3 is 10^3, not 103."""

import re
from typing import Any

from cragside.adapters.documents.page_elements import INLINE

# Around raised and lowered text in the pieces of a paragraph. Unicode keeps these signs for such use.
RAISED, LOWERED, LEVEL = "\ufdd0", "\ufdd1", "\ufdd2"
_TEXT = f"[^{RAISED}{LOWERED}{LEVEL}]{{0,200}}"
_MARKED = re.compile(f"([{RAISED}{LOWERED}])({_TEXT}(?:{LEVEL}\\1{_TEXT}){{0,20}}){LEVEL}")
_LEFT = str.maketrans("", "", RAISED + LOWERED + LEVEL)
_FIGURE = re.compile(r"\s{0,9}[-+−–]?\d")
_SINGLE = re.compile(r"[-+−–]?[\w.,]{1,200}")
_FRACTION = "⁄"
_STYLE = re.compile(r"vertical-align\s{0,9}:\s{0,9}(super|sub)\b", re.IGNORECASE)


def leveled(text: str) -> str:
    """The text without the marks around what is raised or lowered."""
    return _MARKED.sub(_placed, text).translate(_LEFT) if LEVEL in text else text


def _placed(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 2, 0) : found.start()].translate(_LEFT)[-1:]
    following = found.string[found.end() : found.end() + 2]
    after = _FRACTION if following == f"/{LOWERED}" else following.translate(_LEFT)[:1]
    return _beside(before, found[2].translate(_LEFT), after, found[1])


def _beside(before: str, text: str, after: str, mark: str) -> str:
    """Raised or lowered text between two characters. It joins no figure on either side."""
    begin = end = ""
    if before.isdigit() and _FIGURE.match(text):
        text = text.strip()
        if after == _FRACTION:
            begin = " "
        else:
            begin = "^" if mark == RAISED else ""
            text = text if begin and _SINGLE.fullmatch(text) else f"({text})"
    if after.isdigit() and text[-1:].isdigit():
        end = " "
    return f"{begin}{text}{end}"


def level_page(tree: Any) -> None:
    """Write the raised and lowered text of a page, in place, so that it joins no figure beside it."""
    before = ""
    stack: list[tuple[Any, bool]] = [(tree, True)]
    while stack:
        element, entering = stack.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if entering and (mark := _mark(element)):
            text, after = "".join(element.itertext()), _after(element)
            written = _beside(before, text, after, mark)
            if written != text:
                begin, _, end = written.partition(text.strip() or text)
                _surround(element, begin, end)
            # Readers of articles part a `span` from the words beside it.
            element.tag = "sup"
            before = written[-1:] or before
        elif entering:
            before = (element.text or "" if tag in INLINE else f" {element.text or ''}")[-1:] or before
            stack.append((element, False))
            stack.extend((child, True) for child in reversed(element))
            continue
        elif tag not in INLINE:
            before = " "
        before = (element.tail or "")[-1:] or before


def _mark(element: Any) -> str:
    if element.tag in ("sup", "sub"):
        return RAISED if element.tag == "sup" else LOWERED
    style = _STYLE.search((element.get("style") or "")[:300]) if element.tag in INLINE else None
    return "" if style is None else RAISED if style[1].lower() == "super" else LOWERED


def _after(element: Any) -> str:
    """The character behind an element, as far as it stands beside it."""
    following = element.getnext()
    if element.tail:
        is_fraction = element.tail == "/" and following is not None and _mark(following) == LOWERED
        return _FRACTION if is_fraction else str(element.tail[0])
    is_near = following is not None and following.tag in INLINE and not _mark(following)
    return ("".join(following.itertext()) if is_near else "")[:1]


def _surround(element: Any, begin: str, end: str) -> None:
    element.text = begin + (element.text or "").lstrip() if begin else element.text
    if len(element):
        element[-1].tail = (element[-1].tail or "") + end
    else:
        element.text = (element.text or "") + end
