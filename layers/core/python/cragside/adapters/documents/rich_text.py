"""Reads RTF as plain text. Pictures and objects in it are left out. Runs in a child process."""

import re

from cragside.adapters.documents.reading import MAX_CHARACTERS, FileOrigin, Reading, Unreadable

# A control word with its number, a group's brace, or whatever else stands between these.
_PART = re.compile(r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'[0-9a-fA-F]{2}|\\[^a-zA-Z]|[{}]|[^\\{}]+|\\")


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The text. Raises `Unreadable` for files that are not RTF."""
    from striprtf.striprtf import rtf_to_text

    if not content.lstrip()[:5] == b"{\\rtf":
        raise Unreadable("is damaged, or no rich text (.rtf)")
    # RTF is ASCII. Other bytes are in the code page that the file names, which the library decodes from escapes.
    text: str = rtf_to_text(_shown(content.decode("latin-1")), errors="replace")  # type: ignore[no-untyped-call]
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"holds more than {MAX_CHARACTERS:,} characters of text, which is the limit")
    return Reading(text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""))


def _shown(text: str) -> str:
    """The file without hidden text: what follows `\\v`, until `\\v0`, `\\plain` or the end of its group."""
    if "\\v" not in text:
        return text
    kept, groups, hidden = list[str](), list[bool](), False
    for part in _PART.finditer(text):
        written, word = part[0], part[1]
        if written == "{":
            groups.append(hidden)
        elif written == "}":
            hidden = groups.pop() if groups else False
        elif word == "v":
            hidden = part[2] is None or int(part[2]) != 0
        elif word == "plain":
            hidden = False
        elif hidden and (word is None or word in ("u", "tab", "line", "cell")):
            continue
        kept.append(written)
    return "".join(kept)
