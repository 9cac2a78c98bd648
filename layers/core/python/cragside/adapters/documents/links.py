"""Decides which address of a link stands behind its text."""

import re
from urllib.parse import unquote

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
    """The address that a field of Word or RTF links to, "" for other fields."""
    found = _LINK.match(_SWITCH.sub("", asked[: 12 * _LONGEST]))
    return found[1] or found[2] if found else ""


def end_link(pieces: list[str], begin: int, target: str) -> None:
    """Append the address of a link whose text begins at the piece with this number."""
    if target:
        pieces.append(address_behind("".join(pieces[max(begin, len(pieces) - _MOST_PIECES) :]), target))


def address_behind(text: str, target: str) -> str:
    """The address behind the text of a link, as " (https://…)"; "" if there is no text or it shows the address.

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
