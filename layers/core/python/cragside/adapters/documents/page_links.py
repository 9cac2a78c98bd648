"""Marks the links of a page, so that their addresses survive the search for the article."""

import re
from typing import Any

from cragside.adapters.documents.links import address_behind

# A sign for each link, which counts as a letter of the link's text: rare Chinese characters.
_FIRST, _LAST = 0x20000, 0x2A6DF
_SIGN = re.compile(r" ?([\U00020000-\U0002a6df])")
_NOT_SHOWN = frozenset({"script", "style", "svg", "math", "template", "noscript"})
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def address_of(link: Any) -> str:
    """The address behind the text of a link. Links in headings lead to these headings, so they have none."""
    if next(link.iterancestors(*_HEADINGS), None) is not None:
        return ""
    target = link.get("href") or ""
    return address_behind(_said(link), target) if target else ""


class PageLinks:
    """Puts signs at the ends of the links of a page, in place, and replaces them in texts by the addresses.

    A page that has such signs itself, or too many links, keeps no addresses.
    """

    def __init__(self, tree: Any) -> None:
        self._addresses: dict[str, str] = {}
        found = [(link, address) for link in tree.iter("a") if (address := address_of(link))]
        if len(found) > _LAST - _FIRST or _SIGN.search("".join(tree.itertext())):
            return
        for number, (link, address) in enumerate(found):
            sign = chr(_FIRST + number)
            self._addresses[sign] = address
            if len(link):
                link[-1].tail = (link[-1].tail or "").rstrip() + sign
            else:
                link.text = (link.text or "").rstrip() + sign

    def shown(self, text: str) -> str:
        """The text with the addresses."""
        return _SIGN.sub(lambda sign: self._addresses[sign[1]], text) if self._addresses else text

    def without(self, text: str | None) -> str:
        """The text without addresses, as that of a title."""
        return _SIGN.sub("", text or "") if self._addresses else text or ""


def _said(link: Any) -> str:
    """The text of a link that a reader sees."""
    pieces, stack = list[str](), [link]
    while stack:
        element = stack.pop()
        if isinstance(element, str):
            pieces.append(element)
        elif element.tag not in _NOT_SHOWN:
            for child in reversed(element):
                stack += [child.tail or "", child]
            pieces.append(element.text or "")
    return "".join(pieces)
