"""Writes what stands within a line: addresses behind links, and raised or lowered figures."""

import re
from typing import Any
from urllib.parse import unquote

UNSEEN = frozenset({"script", "style", "template", "noscript", "svg", "math", "head", "iframe", "object", "select"})
INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"}
    | {"label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var"}
    | {"wbr"}
)
CELLS = frozenset({"td", "th"})
# What neither begins nor ends a line.
WITHIN_LINES = INLINE | CELLS
HEADING = re.compile(r"h([1-6])$")


# Longer ones are those of counters and sessions.
_LONGEST = 250
# Links are compared with their last pieces: others would take too long.
_MOST_PIECES = 500
_KNOWN = re.compile(r"(?:https?|ftp)://[^/]|mailto:[^?]|tel:", re.IGNORECASE)
# Blanks, control characters and signs that turn the direction of text.
_BROKEN = re.compile("[\\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
_BARE = re.compile(r"(?:https?|ftp)://(?:www\.)?|mailto:|tel:", re.IGNORECASE)
_NO_DIGIT = re.compile(r"\D")

# The instruction of a field in Word and RTF.
_LINK = re.compile(r'\s{0,9}HYPERLINK\s{0,9}(?:"([^"]{1,1000})"|\s([^\s"\\]{1,1000}))', re.IGNORECASE)
# A place in the document, a tip or a frame, with its text.
_SWITCH = re.compile(r'\\{1,2}[a-z](?![a-z])(?:\s{0,9}"[^"]{0,1000}")?', re.IGNORECASE)


def field_target(asked: str) -> str:
    """Return the address that a field of Word or RTF links to, "" for other fields."""
    found = _LINK.match(_SWITCH.sub("", asked[: 12 * _LONGEST]))
    return found[1] or found[2] if found else ""


def end_link(pieces: list[str], begin: int, target: str) -> None:
    """Append the address of a link whose text begins at the piece with this number."""
    if target:
        pieces.append(address_behind("".join(pieces[max(begin, len(pieces) - _MOST_PIECES) :]), target))


def address_behind(text: str, target: str) -> str:
    """Return the address behind the text of a link, as " (https://…)"; "" if there is no text or it shows the address.

    Only addresses of pages, mailboxes and telephones count.
    """
    if len(target) > 4 * _LONGEST:
        return ""
    target = target.strip().replace(" ", "%20")
    if target.startswith("//"):
        target = f"https:{target}"
    if target.lower().startswith("www."):
        target = f"https://{target}"
    if not text.strip() or len(target) > _LONGEST or _BROKEN.search(target) or not _KNOWN.match(target):
        return ""
    bare = _BARE.sub("", target, count=1).rstrip("/")
    shown = target
    if target.lower().startswith(("mailto:", "tel:")):
        bare = shown = unquote(bare.partition("?")[0])
        if _BROKEN.search(shown):
            return ""
    said = "".join(text[: 8 * _LONGEST].split()).casefold()
    same = bare.casefold() in said or unquote(bare).casefold() in said
    if target.lower().startswith("tel:"):
        same = _NO_DIGIT.sub("", bare)[-6:] in _NO_DIGIT.sub("", said)
    return "" if same else f" ({shown})"


# A sign for each link, which counts as a letter of the link's text: rare Chinese characters.
_FIRST, _LAST = 0x20000, 0x2A6DF
_SIGN = re.compile(r" ?([\U00020000-\U0002a6df])")
_NOT_SHOWN = frozenset({"script", "style", "svg", "math", "template", "noscript"})
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def address_of(link: Any) -> str:
    """Return the address behind the text of a link. Links in headings lead to these headings, so they have none."""
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
        """Return the text with the addresses."""
        return _SIGN.sub(lambda sign: self._addresses[sign[1]], text) if self._addresses else text

    def without(self, text: str | None) -> str:
        """Return the text without addresses, as that of a title."""
        return _SIGN.sub("", text or "") if self._addresses else text or ""


def _said(link: Any) -> str:
    """Return the text of a link that a reader sees."""
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
    """Return the text without the marks around what is raised or lowered."""
    return _MARKED.sub(_placed, text).translate(_LEFT) if LEVEL in text else text


def _placed(found: re.Match[str]) -> str:
    before = found.string[max(found.start() - 2, 0) : found.start()].translate(_LEFT)[-1:]
    following = found.string[found.end() : found.end() + 2]
    after = _FRACTION if following == f"/{LOWERED}" else following.translate(_LEFT)[:1]
    return _beside(before, found[2].translate(_LEFT), after, found[1])


def _beside(before: str, text: str, after: str, mark: str) -> str:
    """Return raised or lowered text with a mark before it, and blanks so that it joins no figure on either side."""
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
    """Return the character behind an element, as far as it stands beside it."""
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
