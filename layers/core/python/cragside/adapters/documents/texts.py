"""Reads plain text of any ending. It may be an e-mail, a chat or the notes of a meeting."""

from dataclasses import replace

from cragside.adapters.documents.chat_exports import as_spoken
from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.first_lines import first_line_title
from cragside.adapters.documents.front_matter import noted
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable

# Of these, people write the beginning. Logs and settings begin with anything.
_PROSE = frozenset({"txt", "text", "rst", "adoc", "org"})


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The text, without front matter if people have written it."""
    text = as_spoken(decoded(content, origin))
    doc_type, tier1 = describe(origin.name, text)
    if origin.file_type not in _PROSE:
        return Reading(text, doc_type, tier1=tier1)
    note = noted(text)
    title = note.title or (first_line_title(note.text) if doc_type in ("text", "meeting") else "")
    return replace(note, doc_type=doc_type, title=title, tier1=tier1)


def decoded(content: bytes, origin: FileOrigin) -> str:
    """The bytes as text. Raises `Unreadable` for binary data."""
    text = decode(content, origin.charset)
    if text is None:
        raise Unreadable(
            "holds binary data, or text in an encoding that is not recognised: if it is text, save it as UTF-8"
        )
    return text
