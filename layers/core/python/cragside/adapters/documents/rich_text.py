"""Reads RTF as plain text. Pictures and objects in it are left out. Runs in a child process."""

import re

from cragside.adapters.documents.reading import MAX_CHARACTERS, FileOrigin, Reading, Unreadable

# A group whose text is hidden: {\v ...}, also behind other formatting.
_HIDDEN = re.compile(r"\{(?:\\[a-z]{1,20}-?\d{0,9} ?){0,10}\\v(?![a-z0-9])[^{}]*\}")


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The text. Raises `Unreadable` for files that are not RTF."""
    from striprtf.striprtf import rtf_to_text

    if not content.lstrip()[:5] == b"{\\rtf":
        raise Unreadable("is damaged, or no rich text (.rtf)")
    # RTF is ASCII. Other bytes are in the code page that the file names, which the library decodes from escapes.
    shown = _HIDDEN.sub("", content.decode("latin-1"))
    text: str = rtf_to_text(shown, errors="replace")  # type: ignore[no-untyped-call]
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"holds more than {MAX_CHARACTERS:,} characters of text, which is the limit")
    return Reading(text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""))
